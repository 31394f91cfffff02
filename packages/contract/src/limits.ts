/** How much of each agent a tenant allows its own tasks. */
import { agentNameSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, route } from './route.ts'

export const maxConcurrencyKey = 200

/** The name under which tasks share the workers. */
export const concurrencyKeySchema = z.string().min(1).max(maxConcurrencyKey)

const most = z.int().min(1).max(1_000_000)

export const agentLimitsBody = z.strictObject({
  /** Turns at a time. */
  concurrency: most.optional(),
  /** Turns of one concurrency key at a time. */
  perKey: most.optional(),
  /** Turns of one concurrency key that start within any minute. */
  perMinute: most.optional(),
  /** By concurrency key: a key of weight 2 gets twice the share of a key of weight 1, which is the default. */
  weights: z
    .record(concurrencyKeySchema, z.number().min(0.01).max(1_000))
    .refine(weights => Object.keys(weights).length <= 1_000, 'Use at most 1,000 keys')
    .optional(),
})

export const agentLimitsSchema = z.object({ agent: agentNameSchema, ...agentLimitsBody.shape })

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

export type AgentLimits = z.output<typeof agentLimitsSchema>
export type AgentLimitsInput = z.input<typeof agentLimitsBody>
