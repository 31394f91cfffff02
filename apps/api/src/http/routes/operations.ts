/** Liveness, readiness, metrics; the agents and their activity, the workers, and the errors of a tenant. */
import {
  activitySchema,
  agentSchema,
  errorGroupSchema,
  maxActivityMinutes,
  RivuletError,
  workerSchema,
  workerVersionSchema,
} from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { isInstallations } from '../../access/principal.ts'
import { agentLabels, listAgents } from '../../store/agents/agents.ts'
import { listVersions } from '../../store/agents/versions.ts'
import { listWorkers } from '../../store/agents/workers.ts'
import { readActivity } from '../../store/reads/activity.ts'
import { groupErrors } from '../../store/reads/error-groups.ts'
import { metricsOfAgents } from '../../telemetry/agent-metrics.ts'
import type { Services } from '../services.ts'

export function agentRoutes(scope: FastifyInstance, { listsFor, config: { leaseMs } }: Services): void {
  const config = { access: { scope: 'tasks:read', ofAgents: true } } as const
  const response = { 200: z.object({ data: z.array(agentSchema) }) }
  scope.withTypeProvider<ZodTypeProvider>().get('/agents', { config, schema: { tags: ['agents'], response } }, async ({ principal }) => {
    return { data: await listAgents(listsFor(principal), principal.tenant, leaseMs) }
  })

  const minutes = (normal: number) =>
    z
      .string()
      .regex(/^[1-9]\d{0,4}$/, `Use 1 to ${maxActivityMinutes}`)
      .transform(Number)
      .pipe(z.int().max(maxActivityMinutes))
      .default(normal)
  const schema = { tags: ['agents'], querystring: z.strictObject({ minutes: minutes(10) }), response: { 200: activitySchema } }
  scope
    .withTypeProvider<ZodTypeProvider>()
    .get('/agents/activity', { config, schema }, ({ query, principal }) =>
      readActivity(listsFor(principal), principal.tenant, query.minutes),
    )

  const workers = { tags: ['agents'], response: { 200: z.object({ data: z.array(workerSchema) }) } }
  scope.withTypeProvider<ZodTypeProvider>().get('/workers', { config, schema: workers }, async ({ principal }) => {
    return { data: await listWorkers(listsFor(principal), principal.tenant, leaseMs) }
  })

  const versions = { tags: ['agents'], response: { 200: z.object({ data: z.array(workerVersionSchema) }) } }
  scope.withTypeProvider<ZodTypeProvider>().get('/versions', { config, schema: versions }, async ({ principal }) => {
    return { data: await listVersions(listsFor(principal), principal.tenant, leaseMs) }
  })

  const querystring = z.strictObject({ minutes: minutes(1_440) })
  const errors = { tags: ['agents'], querystring, response: { 200: z.object({ data: z.array(errorGroupSchema) }) } }
  scope.withTypeProvider<ZodTypeProvider>().get('/errors', { config, schema: errors }, async ({ query, principal }) => {
    return { data: await groupErrors(listsFor(principal), principal.tenant, query.minutes) }
  })
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

/** The metrics cover all tenants. The keys of one tenant get them without the series of agents, models and versions that may be others'. */
export function metricsRoute(scope: FastifyInstance, { metrics, sampleMetrics, db }: Services): void {
  const config = { access: { scope: 'metrics' } } as const
  const text = { description: 'In the format of Prometheus', content: { 'text/plain': { schema: z.string() } } }
  scope.get('/metrics', { config, schema: { tags: ['operations'], response: { 200: text } } }, async ({ principal }, reply) => {
    const [agents] = await Promise.all([isInstallations(principal) ? null : agentLabels(db, principal.tenant), sampleMetrics()])
    reply.header('content-type', metrics.registry.contentType)
    const text = await metrics.registry.metrics()
    return agents ? metricsOfAgents(text, new Set(agents)) : text
  })
}
