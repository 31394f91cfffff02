/** Tasks, their state and their tokens. */
import {
  cancelTaskBody,
  changeTaskBody,
  createTaskBody,
  createTokenBody,
  forkTaskBody,
  listTasksQuery,
  messageSchema,
  putStateBody,
  revokeTokensQuery,
  stateSchema,
  stepSchema,
  streamFormatSchema,
  taskIdSchema,
  taskSchema,
  taskSummarySchema,
  tokenResponse,
  turnSchema,
  waitSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, pageOf, route } from '../route.ts'

const tag = 'tasks'
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const
const readingOne = { tag, scope: 'tasks:read', token: 'read' } as const
export const params = z.object({ id: taskIdSchema })

export const accepted = z.object({ task: taskSchema, turn: turnSchema.optional() })
/** The rest of a response that waited for the end of a turn. */
export const finished = { messages: z.array(messageSchema).optional(), nextCursor: z.int().nullish() }
/** The response if that end did not come in time. */
export const underWay = z.object({ task: taskSchema, turn: turnSchema, cursor: z.string() })

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

export const getState = route('GET /v1/tasks/:id/state', {
  ...readingOne,
  params,
  returns: { 200: stateSchema },
  errors: ['task_not_found'],
  doc: 'Returns the state of a task, with an ETag',
  note: '[What a state is](#the-state-of-a-task)',
})

export const putState = route('PUT /v1/tasks/:id/state', {
  ...writing,
  echoes: 200,
  params,
  headers: z.looseObject({ 'if-match': z.string().optional() }),
  body: putStateBody,
  returns: { 200: stateSchema },
  audited: 'state.set',
  errors: ['task_not_found', 'task_busy', 'precondition_failed', 'state_too_large', 'precondition_required'],
  doc: 'Replaces the state of a task between two turns',
  note: 'With an `ETag`',
})

export const createToken = route('POST /v1/tasks/:id/tokens', {
  ...{ tag, scope: 'tasks:read' },
  params,
  body: createTokenBody,
  returns: { 201: tokenResponse },
  audited: 'token.created',
  errors: ['task_not_found', 'not_found'],
  doc: 'Creates a token for a task, for a browser',
})

export const revokeTokens = route('DELETE /v1/tasks/:id/tokens', {
  ...{ tag, scope: 'tasks:write' },
  params,
  query: revokeTokensQuery,
  returns: { 204: nothing },
  audited: 'token.revoked',
  errors: ['task_not_found'],
  doc: 'Revokes the tokens of a task that were created before now',
})
