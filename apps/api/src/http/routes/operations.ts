/** Liveness, readiness, metrics, and the list of agents. */
import { activitySchema, agentSchema, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { readActivity } from '../../store/reads/activity.ts'
import { listAgents } from '../../store/reads/agents.ts'
import type { Services } from '../services.ts'

export function agentRoutes(scope: FastifyInstance, { databaseFor, config: { leaseMs } }: Services): void {
  const config = { access: { scope: 'tasks:read' } } as const
  const response = { 200: z.object({ data: z.array(agentSchema) }) }
  scope
    .withTypeProvider<ZodTypeProvider>()
    .get('/agents', { config, schema: { tags: ['agents'], response } }, async ({ principal: { tenant } }) => {
      return { data: await listAgents(databaseFor(tenant), tenant, leaseMs) }
    })

  const minutes = z
    .string()
    .regex(/^([1-9]|[1-5]\d|60)$/, 'Use 1 to 60')
    .transform(Number)
    .default(10)
  const querystring = z.strictObject({ minutes })
  const schema = { tags: ['agents'], querystring, response: { 200: activitySchema } }
  scope
    .withTypeProvider<ZodTypeProvider>()
    .get('/agents/activity', { config, schema }, ({ query, principal: { tenant } }) =>
      readActivity(databaseFor(tenant), tenant, query.minutes),
    )
}

export function operationRoutes(app: FastifyInstance, { unready }: Services): void {
  const schema = { tags: ['operations'], response: { 200: z.object({ status: z.enum(['ok', 'ready']) }) } }
  const config = { anyHost: true } as const
  app.get('/healthz', { config, schema }, async () => ({ status: 'ok' }))

  app.get('/readyz', { config, schema }, async () => {
    const reason = await unready()
    if (reason !== null) throw new RivuletError('dependency_unavailable', reason)
    return { status: 'ready' }
  })
}

/** The metrics cover all tenants, so they need the scope `admin`. */
export function metricsRoute(scope: FastifyInstance, { metrics, sampleMetrics }: Services): void {
  const config = { access: { scope: 'admin' } } as const
  const text = { description: 'In the format of Prometheus', content: { 'text/plain': { schema: z.string() } } }
  scope.get('/metrics', { config, schema: { tags: ['operations'], response: { 200: text } } }, async (_, reply) => {
    await sampleMetrics()
    reply.header('content-type', metrics.registry.contentType)
    return metrics.registry.metrics()
  })
}
