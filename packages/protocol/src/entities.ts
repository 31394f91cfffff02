/** What the API stores and shows. Readers ignore fields that they do not know; times are ISO 8601 in UTC. */
import { z } from 'zod'
import { contentSchema } from './content.ts'
import { jsonObjectSchema, jsonSchema } from './json.ts'
import { messageStatusSchema, stopReasonSchema, taskStatusSchema, turnStatusSchema } from './status.ts'

/** Of agents and of tenants. */
export const nameRule = 'Use 1 to 64 of a-z, 0-9, _ and -'
export const nameSchema = z.string().regex(/^[a-z0-9_-]{1,64}$/, nameRule)
export const agentNameSchema = nameSchema
export const taskIdSchema = z.uuid()
export const authorSchema = z.enum(['user', 'agent', 'system'])
export const failureSchema = z.object({ code: z.string(), message: z.string() })
/** Token counts, such as `inputTokens` and `outputTokens`. */
export const usageSchema = z.record(z.string(), z.number())

const time = z.iso.datetime()

export const messageSchema = z.object({
  task: taskIdSchema,
  index: z.int().min(0),
  turn: z.int().min(1),
  attempt: z.int().min(0),
  author: authorSchema,
  content: contentSchema,
  metadata: jsonObjectSchema,
  status: messageStatusSchema,
  stopReason: stopReasonSchema.optional(),
  usage: usageSchema.optional(),
  error: failureSchema.optional(),
  createdAt: time,
  finishedAt: time.optional(),
})

export const taskSchema = z.object({
  id: taskIdSchema,
  agent: agentNameSchema,
  name: z.string().optional(),
  status: taskStatusSchema,
  params: jsonSchema.nullable(),
  metadata: jsonObjectSchema,
  createdAt: time,
  updatedAt: time,
})

export const turnSchema = z.object({
  id: z.uuid(),
  task: taskIdSchema,
  number: z.int().min(1),
  status: turnStatusSchema,
  attempt: z.int().min(0),
  input: contentSchema.optional(),
  params: jsonSchema.optional(),
  stopReason: stopReasonSchema.optional(),
  usage: usageSchema.optional(),
  error: failureSchema.optional(),
  queuedAt: time,
  startedAt: time.optional(),
  finishedAt: time.optional(),
})

export const agentSchema = z.object({
  name: agentNameSchema,
  description: z.string(),
  workers: z.int().min(0),
  queued: z.int().min(0),
  running: z.int().min(0),
})

/** Length of a bucket of activity. */
export const activityBucketMs = 15_000

/** Turns that ended in the last minutes. A row without an agent is for all of them; buckets in which nothing ended have no row. */
export const activitySchema = z.object({
  from: time,
  to: time,
  bucketMs: z.int().min(1),
  data: z.array(
    z.object({
      at: time,
      agent: agentNameSchema.nullable(),
      completed: z.int().min(0),
      failed: z.int().min(0),
      canceled: z.int().min(0),
      /** Median from queued to started; null where none of them started. */
      waitMs: z.number().nullable(),
      /** Median and 95th percentile from started to finished. */
      runMs: z.number().nullable(),
      slowRunMs: z.number().nullable(),
    }),
  ),
})

export type Author = z.output<typeof authorSchema>
export type Failure = z.output<typeof failureSchema>
export type Usage = z.output<typeof usageSchema>
export type Message = z.output<typeof messageSchema>
export type Task = z.output<typeof taskSchema>
export type Turn = z.output<typeof turnSchema>
export type Agent = z.output<typeof agentSchema>
export type Activity = z.output<typeof activitySchema>
