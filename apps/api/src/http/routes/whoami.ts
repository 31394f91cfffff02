/** For whom the API takes its caller, so that a page offers only what its key may do. */
import * as contract from '@rivulet/contract/keys'
import type { FastifyInstance } from 'fastify'
import { serve } from '../serve.ts'

export function whoamiRoute(scope: FastifyInstance): void {
  serve(scope, contract.whoami, async ({ principal }) => {
    const { tenant, scopes, key, expiresAt, agents } = principal
    const limits = { ...(expiresAt && { expiresAt: expiresAt.toISOString() }), ...(agents && { agents: [...agents] }) }
    return { caller: { tenant, scopes: [...scopes], ...(key !== null && { key }), ...limits } }
  })
}
