/** How much of an agent a tenant allows its own tasks: limits, pause, removal. */
import {
  agentLimitsBody,
  agentLimitsSchema,
  agentNameSchema,
  agentSchema,
  changeAgentBody,
  type JsonObject,
  RivuletError,
} from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { findLimits, listLimits, pauseAgent, removeAgent, removeLimits, setLimits } from '../../store/agents/agent-limits.ts'
import { listAgents } from '../../store/agents/agents.ts'
import { createAudit } from '../requests/audited.ts'
import type { Services } from '../services.ts'

const reading = { access: { scope: 'tasks:read', ofAgents: true } } as const
const administering = { access: { scope: 'admin' } } as const
const limitsResponse = z.object({ limits: agentLimitsSchema })

export function limitRoutes(scope: FastifyInstance, services: Services): void {
  const { db, databaseFor, relay, config } = services
  const { leaseMs } = config
  const { audited } = createAudit(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const params = z.object({ agent: agentNameSchema })
  const tags = ['limits']

  const listing = { tags, response: { 200: z.object({ data: z.array(agentLimitsSchema) }) } }
  app.get('/limits', { config: reading, schema: listing }, async ({ principal }) => ({
    data: await listLimits(databaseFor(principal), principal.tenant),
  }))

  const one = { tags, params, response: { 200: limitsResponse } }
  app.get('/limits/:agent', { config: reading, schema: one }, async ({ params: { agent }, principal }) => ({
    limits: await findLimits(databaseFor(principal), principal.tenant, agent),
  }))

  app.put('/limits/:agent', { config: administering, schema: { ...one, body: agentLimitsBody } }, async request => {
    const { tenant } = request.principal
    const { agent } = request.params
    const change = { action: 'limits.set', target: agent, details: request.body as JsonObject } as const
    const limits = await audited(databaseFor(tenant), request, change, tx => setLimits(tx, tenant, agent, request.body))
    relay.kick()
    return { limits }
  })

  app.delete('/limits/:agent', { config: administering, schema: { tags, params, response: { 204: z.null() } } }, async (request, reply) => {
    const { agent } = request.params
    const { tenant } = request.principal
    const change = { action: 'limits.removed', target: agent } as const
    await audited(databaseFor(tenant), request, change, tx => removeLimits(tx, tenant, agent))
    relay.kick()
    return reply.status(204).send(null)
  })

  const named = z.object({ name: agentNameSchema })
  const change = { tags: ['agents'], params: named, body: changeAgentBody, response: { 200: z.object({ agent: agentSchema }) } }
  app.patch('/agents/:name', { config: administering, schema: change }, async request => {
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

  app.delete(
    '/agents/:name',
    { config: administering, schema: { tags: ['agents'], params: named, response: { 204: z.null() } } },
    async (request, reply) => {
      const { name } = request.params
      const change = { action: 'agent.removed', target: name } as const
      await audited(db, request, change, tx => removeAgent(tx, request.principal.tenant, name, leaseMs))
      return reply.status(204).send(null)
    },
  )
}
