/** The objects that the API stores and returns. Readers ignore unknown fields. Times are ISO 8601 in UTC. */
import { z } from 'zod'
import { maxModelName } from '../limits.ts'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'
import { acceptsSchema, inputModesSchema, skillsSchema } from './agent-skill.ts'
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

/**
 * A task in a line of a list: no `params`, and nothing that can be long. `title` is the beginning of its first input that
 * was not discarded. The figures are those of its
 * latest 100 turns.
 */
export const taskSummarySchema = z.object({
  id: taskIdSchema,
  agent: agentNameSchema,
  name: z.string().optional(),
  status: taskStatusSchema,
  metadata: jsonObjectSchema,
  title: z.string().optional(),
  turns: z.int().min(0),
  /** Of the turns that have ended. */
  ranMs: z.int().min(0),
  /** When the turn that runs was started. */
  runningSince: time.optional(),
  /** When the next turn may start, if its time has not come. */
  dueAt: time.optional(),
  /** Of all attempts. */
  tokens: z.int().min(0),
  /** In US dollars; absent where a response has no price. */
  cost: z.number().optional(),
  /** Of the last turn, with the beginning of its message. */
  error: failureSchema.optional(),
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

/**
 * One attempt of a turn. `messages` is what an attempt said that another one followed, as far as 32 KiB hold it; those of the latest attempt are the
 * messages of the turn. `lost`: its worker died.
 */
export const attemptSchema = z.object({
  attempt: z.int().min(1),
  status: z.enum([...turnStatusSchema.options, 'lost']),
  worker: z.string().optional(),
  startedAt: time.optional(),
  finishedAt: time.optional(),
  error: turnFailureSchema.optional(),
  usage: usageSchema.optional(),
  messages: z.array(messageSchema).optional(),
  omitted: omittedSchema,
})

/** A durable step that a turn has taken, without what it returned. `startedAt` is absent where the worker did not tell how long it took. */
export const stepSchema = z.object({ turn: z.int().min(1), name: z.string(), startedAt: time.optional(), finishedAt: time })

export const agentSchema = z.object({
  name: agentNameSchema,
  description: z.string(),
  /** JSON Schema of its params, if it has announced one. */
  params: jsonObjectSchema.optional(),
  /** Its defaults for new tasks, if it has announced any. */
  timeoutMs: z.int().min(1).optional(),
  maxAttempts: z.int().min(1).optional(),
  /** A turn stays with the version of the worker that began it. */
  pin: z.boolean().optional(),
  /** What it can do and take, if it has announced it. */
  skills: skillsSchema.optional(),
  inputModes: inputModesSchema.optional(),
  accepts: acceptsSchema.optional(),
  /** It accepts tasks of this tenant and starts none. Older servers omit it. */
  paused: z.boolean().optional(),
  workers: z.int().min(0),
  queued: z.int().min(0),
  running: z.int().min(0),
})

/** Length of a bucket in the activity of an hour or less; for longer, there are at most 240 buckets. */
export const activityBucketMs = 15_000
/** The longest time that activity and errors are read for. */
export const maxActivityMinutes = 7 * 24 * 60

/** Turns that ended in the last minutes. A row without an agent counts all agents; a bucket in which no turn ended has no row. */
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
      /** Median and 95th percentile from queued to started; null when none of the turns started. */
      waitMs: z.number().nullable(),
      slowWaitMs: z.number().nullable(),
      /** Median and 95th percentile from started to finished. */
      runMs: z.number().nullable(),
      slowRunMs: z.number().nullable(),
    }),
  ),
  /** How many turns of all agents were queued at the end of each bucket. */
  queued: z.array(z.int().min(0)),
})

/** A worker that was heard of in the last day, with the turns of the caller's tenant that it runs. */
export const workerSchema = z.object({
  id: z.string(),
  /** The release of its agents, else of its SDK. Absent for an older worker, like `slots`. */
  version: z.string().optional(),
  /** Turns of all tenants that it runs at a time, at most. */
  slots: z.int().min(1).optional(),
  agents: z.array(agentNameSchema),
  seenAt: time,
  /** Since it was last heard of, by the clock of Postgres. */
  silentMs: z.int().min(0),
  /** Whether it may hold a lease. */
  isLive: z.boolean(),
  turns: z.array(z.object({ task: taskIdSchema, turn: z.int().min(1), agent: agentNameSchema, startedAt: time })),
})

/** A version of workers, and how many turns of the caller's tenant began with it and have not ended. */
export const workerVersionSchema = z.object({
  version: z.string(),
  /** Of workers with a heartbeat in the last day. */
  agents: z.array(agentNameSchema),
  /** Workers that may hold a lease, and the turns that they run at a time, at most. */
  workers: z.int().min(0),
  slots: z.int().min(0),
  queued: z.int().min(0),
  running: z.int().min(0),
  waiting: z.int().min(0),
  /** No turn is left that began with this version: its workers can be stopped for good. */
  isDrained: z.boolean(),
})

/** Turns that failed for what looks like the same reason: the same agent and code, and the same message apart from its numbers and ids. */
export const errorGroupSchema = z.object({
  fingerprint: z.string(),
  agent: agentNameSchema,
  code: z.string(),
  /** Of the latest. */
  message: z.string(),
  count: z.int().min(1),
  tasks: z.int().min(1),
  firstAt: time,
  lastAt: time,
  lastTask: taskIdSchema,
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
export type TaskSummary = z.output<typeof taskSummarySchema>
export type Turn = z.output<typeof turnSchema>
export type Attempt = z.output<typeof attemptSchema>
export type Step = z.output<typeof stepSchema>
export type Agent = z.output<typeof agentSchema>
export type Activity = z.output<typeof activitySchema>
export type Worker = z.output<typeof workerSchema>
export type WorkerVersion = z.output<typeof workerVersionSchema>
export type ErrorGroup = z.output<typeof errorGroupSchema>
