/** What the responses of models used, and what they cost. */
import { RivuletError, usageQuery, usageReportSchema } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { everyone, everyTenant } from '../../store/connection/tenant.ts'
import { readUsage } from '../../store/usage/read-usage.ts'
import type { Services } from '../services.ts'

export function usageRoutes(scope: FastifyInstance, { listsFor }: Services): void {
  const config = { access: { scope: 'tasks:read', ofAgents: true } } as const
  const schema = { tags: ['usage'], querystring: usageQuery, response: { 200: usageReportSchema } }
  scope.withTypeProvider<ZodTypeProvider>().get('/usage', { config, schema }, ({ query, principal }) => {
    if (query.by === 'tenant' && !principal.isRoot)
      throw new RivuletError('forbidden', 'Only the root key can see the usage of all tenants')
    return query.by === 'tenant'
      ? readUsage(listsFor(everyone), everyTenant, query)
      : readUsage(listsFor(principal), principal.tenant, query)
  })
}
