/** Tasks: creating, reading, changing and ending them. */
import {
  agentNameSchema,
  failureSchema,
  jsonObjectSchema,
  jsonSchema,
  stateSchema,
  taskIdSchema,
  taskSchema,
  taskStatusSchema,
  turnSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, pageOf, route } from '../route.ts'
import { digits, pageLimit, waitSchema, withMetadata } from '../values.ts'
import { accepted, finished, inputsSchema, params, secretsSchema, streamFormatSchema, taskFields, taskName, underWay } from './fields.ts'

const time = z.iso.datetime()

/**
 * A task in a line of a list: no `params`, and nothing that can be long. `title` is the beginning of its first input that was not discarded. The
 * figures are those of its latest 100 turns.
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

/** A durable step that a turn has taken, without what it returned. `startedAt` is absent where the worker did not tell how long it took. */
export const stepSchema = z.object({ turn: z.int().min(1), name: z.string(), startedAt: time.optional(), finishedAt: time })

export const createTaskBody = taskFields
  .refine(({ start, input }) => start || input === undefined, { path: ['input'], message: 'A task that does not start takes no input' })
  .refine(({ start, delayMs }) => start || delayMs === 0, { path: ['delayMs'], message: 'A task that does not start takes no delay' })

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

/** `all`: every turn that has not ended. `turn`: only the one that has begun; those behind it run next. */
export const cancelScopeSchema = z.enum(['all', 'turn'])

export const cancelTaskBody = z.strictObject({ reason: z.string().max(1000).optional(), scope: cancelScopeSchema.default('all') })

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

export const listTasksQuery = withMetadata(taskFilters)

const tag = 'tasks'
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const
const readingOne = { tag, scope: 'tasks:read', token: 'read' } as const

export const createTask = route('POST /v1/tasks', {
  ...writing,
  ...{ echoes: 201, addsWork: true },
  query: z.strictObject({ format: streamFormatSchema.optional(), wait: waitSchema.optional() }),
  body: createTaskBody,
  returns: { 200: accepted.extend(finished), 201: accepted.extend(finished), 202: underWay },
  idempotencyKey: 'kept',
  errors: ['unknown_agent', 'too_many_turns', 'quota_exceeded', 'too_many_streams'],
  doc: 'Creates a task with its first turn, or adds a turn to the task of this name',
  note: '200 if a task of this `name` exists; an event stream if the request accepts one; [with `wait`](#waiting-for-the-end-of-a-turn), its messages too',
})

export const listTasks = route('GET /v1/tasks', {
  ...{ tag, scope: 'tasks:read', ofAgents: true },
  query: listTasksQuery,
  returns: { 200: z.union([pageOf(taskSchema), pageOf(taskSummarySchema)]) },
  errors: ['overloaded'],
  doc: 'Lists tasks, the newest first',
  note: 'TaskSummary[] with `view=summary`',
})

export const getTask = route('GET /v1/tasks/:id', {
  ...readingOne,
  params,
  returns: { 200: z.object({ task: taskSchema, turns: z.array(turnSchema), state: stateSchema.optional() }) },
  errors: ['task_not_found'],
  doc: 'Returns a task, its latest turns and its state',
  note: 'The latest 100 turns, ascending, with as many of their values as [the budget allows](#large-values)',
})

export const changeTask = route('PATCH /v1/tasks/:id', {
  ...writing,
  params,
  body: changeTaskBody,
  returns: { 200: z.object({ task: taskSchema }) },
  audited: ['task.changed', 'secrets.set', 'secrets.removed'],
  errors: ['task_not_found', 'name_taken'],
  doc: 'Changes the name, the metadata or the secrets of a task',
})

export const deleteTask = route('DELETE /v1/tasks/:id', {
  ...writing,
  params,
  returns: { 204: nothing },
  audited: 'task.deleted',
  errors: ['task_not_found', 'task_busy'],
  doc: 'Deletes a task that has ended, with all that is stored of it',
})

export const forkTask = route('POST /v1/tasks/:id/fork', {
  ...writing,
  addsWork: true,
  params,
  body: forkTaskBody.nullish(),
  returns: { 201: accepted },
  idempotencyKey: 'kept',
  audited: 'task.forked',
  errors: ['task_not_found', 'not_found', 'task_busy', 'name_taken', 'too_many_turns', 'quota_exceeded'],
  doc: 'Creates a copy of a task',
})

export const cancelTask = route('POST /v1/tasks/:id/cancel', {
  ...{ tag, scope: 'tasks:write', token: 'cancel' },
  params,
  body: cancelTaskBody.nullish(),
  returns: { 200: z.object({ task: taskSchema }) },
  idempotencyKey: 'kept',
  audited: 'task.canceled',
  errors: ['task_not_found'],
  doc: 'Cancels the turns of a task that have not ended',
  note: 'After the commit; also if there was nothing to cancel',
})

export const exportTask = route('GET /v1/tasks/:id/export', {
  ...readingOne,
  params,
  returns: { 200: { description: 'Lines of JSON', content: { 'application/x-ndjson': { schema: z.string() } } } },
  audited: 'task.exported',
  errors: ['task_not_found'],
  doc: 'Returns everything that is stored of a task',
  note: '[What they have](#the-export-of-a-task)',
})

// Without a token right, because names of steps reveal how an agent works.
export const listSteps = route('GET /v1/tasks/:id/steps', {
  ...{ tag, scope: 'tasks:read' },
  params,
  returns: { 200: z.object({ data: z.array(stepSchema) }) },
  errors: ['task_not_found'],
  doc: 'Lists the latest steps that the turns of a task have taken, the earliest first',
  note: 'At most 500',
})

export type CreateTask = z.output<typeof createTaskBody>
export type ForkTask = z.output<typeof forkTaskBody>
export type ChangeTask = z.output<typeof changeTaskBody>
export type ChangeTaskInput = z.input<typeof changeTaskBody>
export type CancelScope = z.output<typeof cancelScopeSchema>
export type ListTasks = z.output<typeof listTasksQuery>
export type CreateTaskInput = z.input<typeof createTaskBody>
export type ForkTaskInput = z.input<typeof forkTaskBody>

export type TaskSummary = z.output<typeof taskSummarySchema>
export type Step = z.output<typeof stepSchema>
