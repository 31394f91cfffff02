/** What the responses of models used, and what they cost. */
import * as contract from '@rivulet/contract/usage'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { everyone, everyTenant } from '../../store/connection/tenant.ts'
import { readUsage } from '../../store/usage/read-usage.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function usageRoutes(scope: FastifyInstance, { listsFor }: Services): void {
  serve(scope, contract.readUsage, ({ query, principal }) => {
    if (query.by === 'tenant' && !principal.isRoot)
      throw new RivuletError('forbidden', 'Only the root key can see the usage of all tenants')
    return query.by === 'tenant'
      ? readUsage(listsFor(everyone), everyTenant, query)
      : readUsage(listsFor(principal), principal.tenant, query)
  })
}
