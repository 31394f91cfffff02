/** Liveness, readiness, metrics and the agents that are there. */
import { activitySchema, agentSchema, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { Services } from '../services.ts'
import { readActivity } from '../store/activity.ts'
import { listAgents } from '../store/agents.ts'

export function agentRoutes(scope: FastifyInstance, { db, config }: Services): void {
  const response = { 200: z.object({ data: z.array(agentSchema) }) }
  scope.withTypeProvider<ZodTypeProvider>().get('/agents', { schema: { tags: ['agents'], response } }, async () => {
    return { data: await listAgents(db, config.leaseMs) }
  })

  const querystring = z.strictObject({ minutes: z.coerce.number().int().min(1).max(60).default(10) })
  const schema = { tags: ['agents'], querystring, response: { 200: activitySchema } }
  scope.withTypeProvider<ZodTypeProvider>().get('/agents/activity', { schema }, ({ query }) => readActivity(db, query.minutes))
}

export function operationRoutes(app: FastifyInstance, { metrics, unready }: Services): void {
  app.get('/healthz', { schema: { tags: ['operations'] } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { tags: ['operations'] } }, async () => {
    const reason = await unready()
    if (reason !== null) throw new RivuletError('dependency_unavailable', reason)
    return { status: 'ready' }
  })

  app.get('/metrics', { schema: { tags: ['operations'] } }, async (_, reply) => {
    reply.header('content-type', metrics.registry.contentType)
    return metrics.registry.metrics()
  })
}
