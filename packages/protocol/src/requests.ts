/** What callers may send. Strict: an unknown field is an error, nothing is coerced. */
import { z } from 'zod'
import { strictContentSchema, text } from './content.ts'
import { agentNameSchema } from './entities.ts'
import { jsonObjectSchema, jsonSchema } from './json.ts'
import { maxMetadataFilters, maxPageSize, maxTokenSeconds } from './limits.ts'
import { taskStatusSchema } from './status.ts'

const hour = 3_600_000
const day = 24 * hour

/** From 0 on; -0 is another number, and nothing is made into what it is not. */
function wholeUpTo(max: number) {
  return z
    .int()
    .min(0)
    .max(max)
    .refine(value => !Object.is(value, -0), 'Expected a number from 0 on')
}

/** A string is short for plain text. */
const inputSchema = z.union([z.string().transform(value => text(value)), strictContentSchema])

export const createTaskBody = z.strictObject({
  agent: agentNameSchema,
  input: inputSchema.optional(),
  params: jsonSchema.optional(),
  metadata: jsonObjectSchema.optional(),
  name: z.string().min(1).max(200).optional(),
  /** Higher runs first among the queued turns of an agent. */
  priority: wholeUpTo(100).default(0),
  delayMs: wholeUpTo(365 * day).default(0),
  timeoutMs: z
    .int()
    .min(1)
    .max(30 * day)
    .default(hour),
  maxAttempts: z.int().min(1).max(100).default(3),
})

export const createTurnBody = z.strictObject({
  input: inputSchema.optional(),
  params: jsonSchema.optional(),
  ifBusy: z.enum(['queue', 'reject', 'interrupt']).default('queue'),
})

export const cancelTaskBody = z.strictObject({ reason: z.string().max(1000).optional() })

/** What the holder of a token may do to its one task. */
export const tokenRightSchema = z.enum(['read', 'send', 'cancel'])

export const createTokenBody = z.strictObject({
  can: z.union([tokenRightSchema.transform(right => [right]), z.array(tokenRightSchema).min(1).max(3)]),
  ttlSeconds: z.int().min(5).max(maxTokenSeconds).default(900),
})

export const tokenAnswer = z.object({ token: z.string(), can: z.array(tokenRightSchema), expiresAt: z.iso.datetime() })

/** Query strings carry numbers as text: digits only. */
const digits = z
  .string()
  .regex(/^\d{1,9}$/, 'Use digits')
  .transform(Number)
const limit = digits.pipe(z.int().min(1).max(maxPageSize)).default(maxPageSize)

const taskFilters = {
  agent: agentNameSchema.optional(),
  status: taskStatusSchema.optional(),
  name: z.string().optional(),
  limit,
  cursor: z.uuid().optional(),
}

/** `metadata.<key>=<value>` finds tasks by their metadata; any other unknown name is an error. */
export const listTasksQuery = z
  .object(taskFilters)
  .catchall(z.string())
  .superRefine((query, context) => {
    const unknown = Object.keys(query).filter(key => !Object.hasOwn(taskFilters, key) && !/^metadata\../.test(key))
    for (const key of unknown) context.addIssue({ code: 'custom', path: [key], message: 'Unknown parameter' })
    const filters = Object.keys(query).filter(key => key.startsWith('metadata.'))
    if (filters.length > maxMetadataFilters)
      context.addIssue({ code: 'custom', path: [], message: `maxMetadataFilters: a query may ask for ${maxMetadataFilters} of them` })
  })

export const listMessagesQuery = z.strictObject({ after: digits.optional(), limit, turn: digits.optional() })

export type CreateTask = z.output<typeof createTaskBody>
export type CreateTurn = z.output<typeof createTurnBody>
export type TaskToken = z.output<typeof tokenAnswer>
export type TokenRight = z.output<typeof tokenRightSchema>
export type ListTasks = z.output<typeof listTasksQuery>
export type ListMessages = z.output<typeof listMessagesQuery>

export type CreateTaskInput = z.input<typeof createTaskBody>
export type CreateTurnInput = z.input<typeof createTurnBody>
export type CreateTokenInput = z.input<typeof createTokenBody>
