/** The requests of callers. Strict: an unknown field is an error, and no value is coerced. */
import { z } from 'zod'
import { concurrencyKeySchema } from '../entities/agent-limits.ts'
import { strictContentSchema, text } from '../entities/content.ts'
import { authorSchema, budgetSchema } from '../entities/entities.ts'
import { agentNameSchema, taskIdSchema } from '../entities/ids.ts'
import { taskStatusSchema } from '../entities/status/status-schema.ts'
import { turnWaitSchema, waitActionSchema, waitIdSchema, waitKindSchema, waitStatusSchema } from '../entities/wait.ts'
import { onEndSchema } from '../entities/webhook.ts'
import { utf8Length } from '../fold/delta-split.ts'
import {
  maxAnswerBytes,
  maxHistoryMessages,
  maxInputs,
  maxMetadataFilters,
  maxPageSize,
  maxSecretLength,
  maxSecrets,
  maxTokenSeconds,
  maxWaitMs,
  maxWaitName,
} from '../limits.ts'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'

const hour = 3_600_000
const day = 24 * hour

/** An integer from 0 to `max`. Rejects -0, because JSON would silently change it to 0. */
export function wholeUpTo(max: number) {
  return z
    .int()
    .min(0)
    .max(max)
    .refine(value => !Object.is(value, -0), 'Expected 0 instead of -0')
}

/** A string is shorthand for plain text. */
const textSchema = z.string().transform(value => text(value))
export const inputSchema = z.union([textSchema, strictContentSchema])

/** One input, or several: consecutive messages of the user. */
const inputsSchema = z.union([textSchema, strictContentSchema, z.array(inputSchema).min(1).max(maxInputs)])

/** A message of a conversation that took place elsewhere. */
const historyMessageSchema = z.strictObject({ author: authorSchema, content: inputSchema, metadata: jsonObjectSchema.optional() })

const taskName = z.string().min(1).max(200)

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

export const createTaskBody = taskFields
  .refine(({ start, input }) => start || input === undefined, { path: ['input'], message: 'A task that does not start takes no input' })
  .refine(({ start, delayMs }) => start || delayMs === 0, { path: ['delayMs'], message: 'A task that does not start takes no delay' })

/** What becomes of an input while a turn of its task has not ended. */
export const ifBusySchema = z.enum(['queue', 'reject', 'interrupt', 'decline', 'inject', 'merge'])

export const createTurnBody = z
  .strictObject({
    input: inputsSchema.optional(),
    params: jsonSchema.optional(),
    secrets: secretsSchema.optional(),
    ifBusy: ifBusySchema.default('queue'),
    /** The conversation goes on behind this turn, 0 for its beginning: those after it are discarded. */
    after: wholeUpTo(999_999_999).optional(),
    /** With `merge`: the turn starts so long after its latest input, but at most so long after its first. */
    debounceMs: wholeUpTo(hour).optional(),
    debounceMaxMs: wholeUpTo(day).optional(),
  })
  .refine(({ ifBusy, debounceMs }) => debounceMs === undefined || ifBusy === 'merge', {
    path: ['debounceMs'],
    message: 'Only with ifBusy merge',
  })
  .refine(({ after, ifBusy }) => after === undefined || ['queue', 'reject', 'interrupt'].includes(ifBusy), {
    path: ['ifBusy'],
    message: 'With after, use queue, reject or interrupt',
  })
  .refine(({ debounceMs, debounceMaxMs }) => debounceMaxMs === undefined || debounceMs !== undefined, {
    path: ['debounceMaxMs'],
    message: 'Only with debounceMs',
  })

/** `after`: the last turn that the copy has. */
export const forkTaskBody = z.strictObject({
  after: z.int().min(1).max(999_999_999).optional(),
  name: taskName.optional(),
  input: inputsSchema.optional(),
  params: jsonSchema.optional(),
})

/** `metadata` is a merge patch (RFC 7396). A name of null removes the name, and secrets of null remove those of the task. */
export const changeTaskBody = z.strictObject({
  name: taskName.nullable().optional(),
  metadata: jsonObjectSchema.optional(),
  secrets: secretsSchema.nullable().optional(),
})

/** The value that takes the place of the task's state. */
export const putStateBody = z.strictObject({ value: jsonSchema })

/** `all`: every turn that has not ended. `turn`: only the one that has begun; those behind it run next. */
export const cancelScopeSchema = z.enum(['all', 'turn'])

export const cancelTaskBody = z.strictObject({ reason: z.string().max(1000).optional(), scope: cancelScopeSchema.default('all') })

/** What a token permits on its task. */
export const tokenRightSchema = z.enum(['read', 'send', 'cancel', 'answer', 'params', 'rewind'])

/** Whom a token is for, in the words of the application that makes it: a user's id, as a rule. */
const tokenSubject = z.string().min(1).max(200)

export const createTokenBody = z.strictObject({
  can: z.union([tokenRightSchema.transform(right => [right]), z.array(tokenRightSchema).min(1).max(tokenRightSchema.options.length)]),
  ttlSeconds: z.int().min(5).max(maxTokenSeconds).default(900),
  /** The right `answer` is for this wait alone. */
  wait: waitIdSchema.optional(),
  subject: tokenSubject.optional(),
})

/** JSON of a person or a program, of bounded size. */
const answerContent = jsonSchema.refine(
  value => utf8Length(JSON.stringify(value)) <= maxAnswerBytes,
  `Use at most ${maxAnswerBytes} bytes of JSON`,
)

export const answerBody = z.strictObject({
  action: waitActionSchema,
  content: answerContent.optional(),
  comment: z.string().max(2_000).optional(),
})

export const waitName = z.string().min(1).max(maxWaitName)

export const signalBody = z.strictObject({ name: waitName, data: answerContent.default(null) })

export const waitAnswered = z.object({ wait: turnWaitSchema })

export const revokeTokensQuery = z.strictObject({ subject: tokenSubject.optional() })

export const tokenResponse = z.object({ token: z.string(), can: z.array(tokenRightSchema), expiresAt: z.iso.datetime() })

/** The formats that an event stream has beside our own events. docs/http-reference.md describes each. */
export const streamFormatSchema = z.enum(['ai-sdk', 'agentex', 'agentkit', 'coding-agent', 'mini-claw-code'])

/** A number in a query string: digits only. */
const digits = z
  .string()
  .regex(/^\d{1,9}$/, 'Use 1 to 9 digits')
  .transform(Number)
/** The index of a message, in an address. */
export const messageIndexSchema = digits
/** The number of a turn, in an address. */
export const turnNumberSchema = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, 'A turn has a number, from 1')
  .transform(Number)
/** How long a request may wait for the end of a turn, in milliseconds: `500ms`, `30s`. */
export const waitSchema = z
  .string()
  .regex(/^\d{1,5}(ms|s)$/, 'Use a time such as 500ms or 30s')
  .transform(given => Number.parseInt(given, 10) * (given.endsWith('ms') ? 1 : 1_000))
  .pipe(z.int().min(1).max(maxWaitMs))
/** `limit` of a list. */
export const pageLimit = digits.pipe(z.int().min(1).max(maxPageSize)).default(maxPageSize)

const milliseconds = digits.pipe(
  z
    .int()
    .min(0)
    .max(10 ** 12),
)

const taskFilters = {
  agent: agentNameSchema.optional(),
  status: taskStatusSchema.optional(),
  name: z.string().optional(),
  /** Children and forks of this task. */
  parent: taskIdSchema.optional(),
  createdAfter: z.iso.datetime({ offset: true }).optional(),
  createdBefore: z.iso.datetime({ offset: true }).optional(),
  /** Of the last turn. */
  errorCode: z.string().min(1).max(100).optional(),
  /** Of a group of `GET /v1/errors`. */
  errorFingerprint: z
    .string()
    .regex(/^[\da-f]{32}$/)
    .optional(),
  /** How long the turns that have ended ran, taken together. */
  minDurationMs: milliseconds.optional(),
  maxDurationMs: milliseconds.optional(),
  /** A text to search for. */
  q: z.string().min(1).max(200).optional(),
  limit: pageLimit,
  cursor: taskIdSchema.optional(),
  view: z.enum(['full', 'summary']).default('full'),
}

const waitFilters = {
  status: waitStatusSchema.default('open'),
  /** Several kinds are separated by commas. */
  kind: z
    .string()
    .transform(list => list.split(','))
    .pipe(z.array(waitKindSchema))
    .optional(),
  agent: agentNameSchema.optional(),
  assignee: z.string().optional(),
  task: taskIdSchema.optional(),
  limit: pageLimit,
  cursor: waitIdSchema.optional(),
}

export const listTasksQuery = withMetadata(taskFilters)
export const listWaitsQuery = withMetadata(waitFilters)

/** `metadata.<key>=<value>` filters by metadata. Any other unknown name is an error. */
function withMetadata<T extends z.ZodRawShape>(known: T) {
  return z
    .object(known)
    .catchall(z.string())
    .superRefine((query, context) => {
      const unknown = Object.keys(query).filter(key => !Object.hasOwn(known, key) && !/^metadata\../.test(key))
      for (const key of unknown) context.addIssue({ code: 'custom', path: [key], message: 'Unknown parameter' })
      const filters = Object.keys(query).filter(key => key.startsWith('metadata.'))
      if (filters.length > maxMetadataFilters)
        context.addIssue({ code: 'custom', path: [], message: `At most ${maxMetadataFilters} metadata filters are allowed` })
    })
}

export const listMessagesQuery = z.strictObject({
  after: digits.optional(),
  limit: pageLimit,
  turn: digits.optional(),
  /** Whether large values that the server stores as files are put back. */
  inline: z.enum(['true', 'false']).optional(),
})

export type CreateTask = z.output<typeof createTaskBody>
export type HistoryMessage = z.output<typeof historyMessageSchema>
export type ForkTask = z.output<typeof forkTaskBody>
export type ChangeTask = z.output<typeof changeTaskBody>
export type ChangeTaskInput = z.input<typeof changeTaskBody>
export type IfBusy = z.output<typeof ifBusySchema>
export type CancelScope = z.output<typeof cancelScopeSchema>
export type Secrets = z.output<typeof secretsSchema>
export type CreateTurn = z.output<typeof createTurnBody>
export type TaskToken = z.output<typeof tokenResponse>
export type StreamFormat = z.output<typeof streamFormatSchema>
export type TokenRight = z.output<typeof tokenRightSchema>
export type ListTasks = z.output<typeof listTasksQuery>
export type ListWaits = z.output<typeof listWaitsQuery>
export type AnswerBody = z.output<typeof answerBody>
export type SignalBody = z.output<typeof signalBody>
export type ListMessages = z.output<typeof listMessagesQuery>

export type CreateTaskInput = z.input<typeof createTaskBody>
export type ForkTaskInput = z.input<typeof forkTaskBody>
export type CreateTurnInput = z.input<typeof createTurnBody>
export type CreateTokenInput = z.input<typeof createTokenBody>
export type RevokeTokensInput = z.input<typeof revokeTokensQuery>
