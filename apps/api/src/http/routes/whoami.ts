/** For whom the API takes its caller, so that a page offers only what its key may do. */
import { callerSchema } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'

export function whoamiRoute(scope: FastifyInstance): void {
  const config = { access: { scope: 'tasks:read', ofAgents: true } } as const
  const response = { 200: z.object({ caller: callerSchema }) }
  scope.withTypeProvider<ZodTypeProvider>().get('/whoami', { config, schema: { tags: ['keys'], response } }, async ({ principal }) => {
    const { tenant, scopes, key, expiresAt, agents } = principal
    const limits = { ...(expiresAt && { expiresAt: expiresAt.toISOString() }), ...(agents && { agents: [...agents] }) }
    return { caller: { tenant, scopes: [...scopes], ...(key !== null && { key }), ...limits } }
  })
}
