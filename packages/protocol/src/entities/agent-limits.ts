/** What a tenant allows an agent for the tenant's own tasks. An absent limit does not limit. */
import { z } from 'zod'
import { agentNameSchema } from './ids.ts'

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

export const changeAgentBody = z.strictObject({
  /** A paused agent accepts tasks and starts none. */
  paused: z.boolean(),
})

export type AgentLimits = z.output<typeof agentLimitsSchema>
export type AgentLimitsInput = z.input<typeof agentLimitsBody>
