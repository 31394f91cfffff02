/** What several calls about tasks take and return. Strict: an unknown field is an error, and no value is coerced. */
import {
  agentNameSchema,
  authorSchema,
  budgetSchema,
  jsonObjectSchema,
  jsonSchema,
  maxHistoryMessages,
  maxInputs,
  maxSecretLength,
  maxSecrets,
  maxWaitName,
  messageSchema,
  strictContentSchema,
  taskIdSchema,
  taskSchema,
  text,
  turnSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { concurrencyKeySchema } from '../limits.ts'
import { wholeUpTo } from '../values.ts'
import { onEndSchema } from '../webhooks.ts'

export const hour = 3_600_000
export const day = 24 * hour

/** A string is shorthand for plain text. */
const textSchema = z.string().transform(value => text(value))

export const inputSchema = z.union([textSchema, strictContentSchema])

/** One input, or several: consecutive messages of the user. */
export const inputsSchema = z.union([textSchema, strictContentSchema, z.array(inputSchema).min(1).max(maxInputs)])

/** A message of a conversation that took place elsewhere. */
const historyMessageSchema = z.strictObject({ author: authorSchema, content: inputSchema, metadata: jsonObjectSchema.optional() })

export const taskName = z.string().min(1).max(200)

/** Values that the platform encrypts, and gives to the worker of a turn alone. Named like variables of an environment. */
export const secretsSchema = z
  .record(
    z.string().regex(/^[A-Za-z_]\w{0,63}$/, 'Name a secret with 1 to 64 letters, digits and _'),
    z.string().min(1).max(maxSecretLength),
  )
  .refine(given => Object.keys(given).length <= maxSecrets, `Use at most ${maxSecrets} secrets`)
  .meta({ writeOnly: true })

export const timeoutMsSchema = z
  .int()
  .min(1)
  .max(30 * day)

export const maxAttemptsSchema = z.int().min(1).max(100)

/** Where neither the caller nor the agent says otherwise. */
export const taskDefaults = { timeoutMs: hour, maxAttempts: 3 } as const

/** What a task can be created with, before it is checked as a whole. */
export const taskFields = z.strictObject({
  agent: agentNameSchema,
  input: inputsSchema.optional(),
  /** What was said before the first turn. */
  history: z.array(historyMessageSchema).min(1).max(maxHistoryMessages).optional(),
  /** False: the task has no turn until one is sent to it. */
  start: z.boolean().default(true),
  params: jsonSchema.optional(),
  secrets: secretsSchema.optional(),
  metadata: jsonObjectSchema.optional(),
  name: taskName.optional(),
  /** Higher runs first among the queued turns of an agent and a concurrency key. */
  priority: wholeUpTo(100).default(0),
  /** Tasks of one key share the workers as one. Default: all tasks of the tenant without a key. */
  concurrencyKey: concurrencyKeySchema.optional(),
  delayMs: wholeUpTo(365 * day).default(0),
  timeoutMs: timeoutMsSchema.optional(),
  maxAttempts: maxAttemptsSchema.optional(),
  /** What its turns may use in all; above it, the next call of a model fails the turn. */
  budget: z
    .strictObject(budgetSchema.shape)
    .refine(({ tokens, usd }) => tokens !== undefined || usd !== undefined, 'Set tokens or usd')
    .optional(),
  /** An address that the server calls when a turn has ended; with the secret to sign with. */
  onEnd: onEndSchema.optional(),
})

export const waitName = z.string().min(1).max(maxWaitName)

/** The formats that an event stream has beside our own events. docs/http-reference.md describes each. */
export const streamFormatSchema = z.enum(['ai-sdk', 'agentex', 'agentkit', 'coding-agent', 'mini-claw-code'])

export const params = z.object({ id: taskIdSchema })
export const accepted = z.object({ task: taskSchema, turn: turnSchema.optional() })

/** The rest of a response that waited for the end of a turn. */
export const finished = { messages: z.array(messageSchema).optional(), nextCursor: z.int().nullish() }

/** The response if that end did not come in time. */
export const underWay = z.object({ task: taskSchema, turn: turnSchema, cursor: z.string() })

export type HistoryMessage = z.output<typeof historyMessageSchema>
export type Secrets = z.output<typeof secretsSchema>
export type StreamFormat = z.output<typeof streamFormatSchema>
