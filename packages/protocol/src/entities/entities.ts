/** The objects that the API stores and returns. Readers ignore unknown fields. Times are ISO 8601 in UTC. */
import { z } from 'zod'
import { maxModelName } from '../limits.ts'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'
import { contentSchema } from './content.ts'
import { agentNameSchema, taskIdSchema, turnIdSchema } from './ids.ts'
import { messageStatusSchema, stopReasonSchema, taskStatusSchema, turnStatusSchema } from './status/status-schema.ts'
import { turnWaitSchema } from './wait.ts'

export const authorSchema = z.enum(['user', 'agent', 'system'])

/** The authors that an agent may choose: what the user has said are inputs, which the platform writes. */
export const speakerSchema = authorSchema.exclude(['user'])

export const failureSchema = z.object({ code: z.string(), message: z.string() })

/** Of a turn, as a caller with a key gets it: `detail` is what was thrown, where that is more than viewers get. */
export const turnFailureSchema = failureSchema.extend({ detail: z.string().optional() })

/** Token counts, such as `inputTokens` and `outputTokens`. */
export const usageSchema = z.record(z.string(), z.number())

/** The response of a model that a message ends: usage with the same `id` counts once, also when a later attempt sends the message again. */
export const responseSchema = z.object({ id: z.string().min(1).max(100).optional(), model: z.string().max(maxModelName).optional() })

const time = z.iso.datetime()

/**
 * Names of values that were left out because they are large: absent, or empty if the field is required. A task alone, and a turn
 * alone, is whole.
 */
export const omittedSchema = z.array(z.string()).optional()

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
  response: responseSchema.optional(),
  error: failureSchema.optional(),
  createdAt: time,
  finishedAt: time.optional(),
})

/** What one response of a model used. The server counts an id once in its turn. */
export const usageRecordSchema = z.strictObject({
  id: z.string().min(1).max(100),
  model: z.string().max(maxModelName).optional(),
  usage: usageSchema,
})

/** What the turns of a task may use in all: tokens, or US dollars by the price table. */
export const budgetSchema = z.object({ tokens: z.int().min(1).optional(), usd: z.number().positive().optional() })

export const taskSchema = z.object({
  id: taskIdSchema,
  agent: agentNameSchema,
  name: z.string().optional(),
  /** The task that this one was forked from, or whose turn has spawned it. */
  parent: taskIdSchema.optional(),
  /** The key under which its turns share the workers. */
  concurrencyKey: z.string().optional(),
  budget: budgetSchema.optional(),
  status: taskStatusSchema,
  params: jsonSchema.nullable(),
  metadata: jsonObjectSchema,
  omitted: omittedSchema,
  createdAt: time,
  updatedAt: time,
})

export const turnSchema = z.object({
  id: turnIdSchema,
  task: taskIdSchema,
  number: z.int().min(1),
  status: turnStatusSchema,
  attempt: z.int().min(0),
  /** The first input. */
  input: contentSchema.optional(),
  /** All inputs, where there are several. */
  inputs: z.array(contentSchema).optional(),
  params: jsonSchema.optional(),
  omitted: omittedSchema,
  /** The turn that this one has become a part of, and the index of its first message there. */
  joinedTo: z.int().min(1).optional(),
  joinIndex: z.int().min(0).optional(),
  /** What the turn waits for and has waited for, in the order in which it asked. */
  waits: z.array(turnWaitSchema).optional(),
  stopReason: stopReasonSchema.optional(),
  /** Of the attempt that ended the turn. */
  usage: usageSchema.optional(),
  /** Of all attempts, with those that failed, died or were canceled. */
  usageTotal: usageSchema.optional(),
  /** What `usageTotal` costs, in US dollars; absent where a response has no price. */
  cost: z.number().optional(),
  error: turnFailureSchema.optional(),
  queuedAt: time,
  startedAt: time.optional(),
  finishedAt: time.optional(),
  /** For callers with a key: when a turn that is delayed, or waits for its next attempt, may start. */
  dueAt: time.optional(),
  /** For callers with a key: the worker that runs it or ran it last, and its trace. */
  worker: z.string().optional(),
  traceId: z.string().optional(),
})

export type Author = z.output<typeof authorSchema>
export type Speaker = z.output<typeof speakerSchema>
export type Failure = z.output<typeof failureSchema>
export type TurnFailure = z.output<typeof turnFailureSchema>
export type Usage = z.output<typeof usageSchema>
export type UsageRecord = z.output<typeof usageRecordSchema>
export type Budget = z.output<typeof budgetSchema>
export type Message = z.output<typeof messageSchema>
export type Task = z.output<typeof taskSchema>
export type Turn = z.output<typeof turnSchema>
