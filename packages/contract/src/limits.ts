/** How much of each agent a tenant allows its own tasks. */
import { agentLimitsBody, agentLimitsSchema, agentNameSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, route } from './route.ts'

const tag = 'limits'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const administering = { tag, scope: 'admin' } as const
const params = z.object({ agent: agentNameSchema })
const limits = z.object({ limits: agentLimitsSchema })

export const listLimits = route('GET /v1/limits', {
  ...reading,
  returns: { 200: z.object({ data: z.array(agentLimitsSchema) }) },
  doc: 'Lists the limits of all agents',
})

export const getLimits = route('GET /v1/limits/:agent', {
  ...reading,
  params,
  returns: { 200: limits },
  errors: ['not_found'],
  doc: 'Returns the limits of an agent',
})

export const setLimits = route('PUT /v1/limits/:agent', {
  ...administering,
  params,
  body: agentLimitsBody,
  returns: { 200: limits },
  audited: 'limits.set',
  errors: ['not_found'],
  doc: 'Sets the limits of an agent',
})

export const removeLimits = route('DELETE /v1/limits/:agent', {
  ...administering,
  params,
  returns: { 204: nothing },
  audited: 'limits.removed',
  doc: 'Removes the limits of an agent',
})
