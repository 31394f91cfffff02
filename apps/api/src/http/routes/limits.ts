/** How much of an agent a tenant allows its own tasks: limits, pause, removal. */
import * as agents from '@rivulet/contract/agents'
import * as limits from '@rivulet/contract/limits'
import { type JsonObject, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { findLimits, listLimits, pauseAgent, removeAgent, removeLimits, setLimits } from '../../store/agents/agent-limits.ts'
import { listAgents } from '../../store/agents/agents.ts'
import { createAudit } from '../requests/audited.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function limitRoutes(scope: FastifyInstance, services: Services): void {
  const { db, databaseFor, relay, config } = services
  const { leaseMs } = config
  const { audited } = createAudit(services)

  serve(scope, limits.listLimits, async ({ principal }) => ({
    data: await listLimits(databaseFor(principal), principal.tenant),
  }))

  serve(scope, limits.getLimits, async ({ params: { agent }, principal }) => ({
    limits: await findLimits(databaseFor(principal), principal.tenant, agent),
  }))

  serve(scope, limits.setLimits, async request => {
    const { tenant } = request.principal
    const { agent } = request.params
    const change = { target: agent, details: request.body as JsonObject } as const
    const limits = await audited(databaseFor(tenant), request, change, tx => setLimits(tx, tenant, agent, request.body))
    relay.kick()
    return { limits }
  })

  serve(scope, limits.removeLimits, async request => {
    const { agent } = request.params
    const { tenant } = request.principal
    const change = { target: agent } as const
    await audited(databaseFor(tenant), request, change, tx => removeLimits(tx, tenant, agent))
    relay.kick()
    return null
  })

  serve(scope, agents.changeAgent, async request => {
    const { name } = request.params
    const { paused } = request.body
    const { tenant } = request.principal
    const change = { action: paused ? 'agent.paused' : 'agent.resumed', target: name } as const
    await audited(databaseFor(tenant), request, change, tx => pauseAgent(tx, tenant, name, paused))
    relay.kick()
    const agent = (await listAgents(databaseFor(request.principal), tenant, leaseMs)).find(own => own.name === name)
    if (!agent) throw new RivuletError('not_found', 'No worker has ever registered this agent')
    return { agent }
  })

  serve(scope, agents.removeAgent, async request => {
    const { name } = request.params
    const change = { target: name } as const
    await audited(db, request, change, tx => removeAgent(tx, request.principal.tenant, name, leaseMs))
    return null
  })
}
