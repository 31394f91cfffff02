/** Liveness, readiness, metrics; the agents and their activity, the workers, and the errors of a tenant. */
import * as agents from '@rivulet/contract/agents'
import * as operations from '@rivulet/contract/operations'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { isInstallations } from '../../access/principal.ts'
import { agentLabels, listAgents } from '../../store/agents/agents.ts'
import { listVersions } from '../../store/agents/versions.ts'
import { listWorkers } from '../../store/agents/workers.ts'
import { readActivity } from '../../store/reads/activity.ts'
import { groupErrors } from '../../store/reads/error-groups.ts'
import { metricsOfAgents } from '../../telemetry/agent-metrics.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function agentRoutes(scope: FastifyInstance, { listsFor, config: { leaseMs } }: Services): void {
  serve(scope, agents.listAgents, async ({ principal }) => {
    return { data: await listAgents(listsFor(principal), principal.tenant, leaseMs) }
  })

  serve(scope, agents.readActivity, ({ query, principal }) => readActivity(listsFor(principal), principal.tenant, query.minutes))

  serve(scope, agents.listWorkers, async ({ principal }) => {
    return { data: await listWorkers(listsFor(principal), principal.tenant, leaseMs) }
  })

  serve(scope, agents.listVersions, async ({ principal }) => {
    return { data: await listVersions(listsFor(principal), principal.tenant, leaseMs) }
  })

  serve(scope, agents.groupErrors, async ({ query, principal }) => {
    return { data: await groupErrors(listsFor(principal), principal.tenant, query.minutes) }
  })
}

export function operationRoutes(app: FastifyInstance, { unready }: Services): void {
  serve(app, operations.checkHealth, async () => ({ status: 'ok' as const }))

  serve(app, operations.checkReadiness, async () => {
    const reason = await unready()
    if (reason !== null) throw new RivuletError('dependency_unavailable', reason)
    return { status: 'ready' as const }
  })
}

/** The metrics cover all tenants. The keys of one tenant get them without the series of agents, models and versions that may be others'. */
export function metricsRoute(scope: FastifyInstance, { metrics, sampleMetrics, db }: Services): void {
  serve(scope, operations.readMetrics, async ({ principal }, reply) => {
    const [agents] = await Promise.all([isInstallations(principal) ? null : agentLabels(db, principal.tenant), sampleMetrics()])
    reply.header('content-type', metrics.registry.contentType)
    const text = await metrics.registry.metrics()
    return agents ? metricsOfAgents(text, new Set(agents)) : text
  })
}
