/** How much of an agent a tenant allows its own tasks: limits, pause, removal. */
import { agentLimitsBody, agentLimitsSchema, agentNameSchema, agentSchema, changeAgentBody, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { findLimits, listLimits, pauseAgent, removeAgent, removeLimits, setLimits } from '../../store/agents/agent-limits.ts'
import { listAgents } from '../../store/agents/agents.ts'
import type { Services } from '../services.ts'

const reading = { access: { scope: 'tasks:read' } } as const
const administering = { access: { scope: 'admin' } } as const
const limitsResponse = z.object({ limits: agentLimitsSchema })

export function limitRoutes(scope: FastifyInstance, { db, databaseFor, relay, config: { leaseMs } }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const params = z.object({ agent: agentNameSchema })
  const tags = ['limits']

  const listing = { tags, response: { 200: z.object({ data: z.array(agentLimitsSchema) }) } }
  app.get('/limits', { config: reading, schema: listing }, async ({ principal: { tenant } }) => ({
    data: await listLimits(databaseFor(tenant), tenant),
  }))

  const one = { tags, params, response: { 200: limitsResponse } }
  app.get('/limits/:agent', { config: reading, schema: one }, async ({ params: { agent }, principal: { tenant } }) => ({
    limits: await findLimits(databaseFor(tenant), tenant, agent),
  }))

  app.put('/limits/:agent', { config: administering, schema: { ...one, body: agentLimitsBody } }, async request => {
    const { tenant } = request.principal
    const limits = await setLimits(databaseFor(tenant), tenant, request.params.agent, request.body)
    relay.kick()
    return { limits }
  })

  app.delete(
    '/limits/:agent',
    { config: administering, schema: { tags, params, response: { 204: z.null() } } },
    async ({ params: { agent }, principal }, reply) => {
      await removeLimits(databaseFor(principal.tenant), principal.tenant, agent)
      relay.kick()
      return reply.status(204).send(null)
    },
  )

  const named = z.object({ name: agentNameSchema })
  const change = { tags: ['agents'], params: named, body: changeAgentBody, response: { 200: z.object({ agent: agentSchema }) } }
  app.patch('/agents/:name', { config: administering, schema: change }, async ({ params: { name }, body, principal: { tenant } }) => {
    await pauseAgent(databaseFor(tenant), tenant, name, body.paused)
    relay.kick()
    const agent = (await listAgents(databaseFor(tenant), tenant, leaseMs)).find(own => own.name === name)
    if (!agent) throw new RivuletError('not_found', 'No worker has ever registered this agent')
    return { agent }
  })

  app.delete(
    '/agents/:name',
    { config: administering, schema: { tags: ['agents'], params: named, response: { 204: z.null() } } },
    async (request, reply) => {
      await removeAgent(db, request.principal.tenant, request.params.name, leaseMs)
      return reply.status(204).send(null)
    },
  )
}
