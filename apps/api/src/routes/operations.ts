/** Liveness, readiness, metrics and the agents that are there. */
import { activitySchema, agentSchema, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { Services } from '../services.ts'
import { readActivity } from '../store/activity.ts'
import { listAgents } from '../store/agents.ts'

export function agentRoutes(scope: FastifyInstance, { of, config: { leaseMs } }: Services): void {
  const config = { access: { scope: 'tasks:read' } } as const
  const response = { 200: z.object({ data: z.array(agentSchema) }) }
  scope
    .withTypeProvider<ZodTypeProvider>()
    .get('/agents', { config, schema: { tags: ['agents'], response } }, async ({ principal: { tenant } }) => {
      return { data: await listAgents(of(tenant), tenant, leaseMs) }
    })

  const querystring = z.strictObject({ minutes: z.coerce.number().int().min(1).max(60).default(10) })
  const schema = { tags: ['agents'], querystring, response: { 200: activitySchema } }
  scope
    .withTypeProvider<ZodTypeProvider>()
    .get('/agents/activity', { config, schema }, ({ query, principal: { tenant } }) => readActivity(of(tenant), tenant, query.minutes))
}

export function operationRoutes(app: FastifyInstance, { unready }: Services): void {
  app.get('/healthz', { schema: { tags: ['operations'] } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { tags: ['operations'] } }, async () => {
    const reason = await unready()
    if (reason !== null) throw new RivuletError('dependency_unavailable', reason)
    return { status: 'ready' }
  })
}

/** Of the whole process, so of all tenants: not for everybody. */
export function metricsRoute(scope: FastifyInstance, { metrics }: Services): void {
  const config = { access: { scope: 'admin' } } as const
  scope.get('/metrics', { config, schema: { tags: ['operations'] } }, async (_, reply) => {
    reply.header('content-type', metrics.registry.contentType)
    return metrics.registry.metrics()
  })
}
