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
  doc: 'Creates a task with its first turn, or adds a turn to the task of this name',
})

export const listTasks = route('GET /v1/tasks', {
  ...{ tag, scope: 'tasks:read', ofAgents: true },
  query: listTasksQuery,
  returns: { 200: z.union([pageOf(taskSchema), pageOf(taskSummarySchema)]) },
  doc: 'Lists tasks, the newest first',
})

export const getTask = route('GET /v1/tasks/:id', {
  ...readingOne,
  params,
  returns: { 200: z.object({ task: taskSchema, turns: z.array(turnSchema), state: stateSchema.optional() }) },
  doc: 'Returns a task, its latest turns and its state',
})

export const changeTask = route('PATCH /v1/tasks/:id', {
  ...writing,
  params,
  body: changeTaskBody,
  returns: { 200: z.object({ task: taskSchema }) },
  doc: 'Changes the name, the metadata or the secrets of a task',
})

export const deleteTask = route('DELETE /v1/tasks/:id', {
  ...writing,
  params,
  returns: { 204: nothing },
  doc: 'Deletes a task that has ended, with all that is stored of it',
})

export const forkTask = route('POST /v1/tasks/:id/fork', {
  ...writing,
  addsWork: true,
  params,
  body: forkTaskBody.nullish(),
  returns: { 201: accepted },
  doc: 'Creates a copy of a task',
})

export const cancelTask = route('POST /v1/tasks/:id/cancel', {
  ...{ tag, scope: 'tasks:write', token: 'cancel' },
  params,
  body: cancelTaskBody.nullish(),
  returns: { 200: z.object({ task: taskSchema }) },
  doc: 'Cancels the turns of a task that have not ended',
})

export const exportTask = route('GET /v1/tasks/:id/export', {
  ...readingOne,
  params,
  returns: { 200: { description: 'Lines of JSON', content: { 'application/x-ndjson': { schema: z.string() } } } },
  doc: 'Returns everything that is stored of a task',
})

// Without a token right, because names of steps reveal how an agent works.
export const listSteps = route('GET /v1/tasks/:id/steps', {
  ...{ tag, scope: 'tasks:read' },
  params,
  returns: { 200: z.object({ data: z.array(stepSchema) }) },
  doc: 'Lists the latest steps that the turns of a task have taken, the earliest first',
})

export const getState = route('GET /v1/tasks/:id/state', {
  ...readingOne,
  params,
  returns: { 200: stateSchema },
  doc: 'Returns the state of a task, with an ETag',
})

export const putState = route('PUT /v1/tasks/:id/state', {
  ...writing,
  echoes: 200,
  params,
  headers: z.looseObject({ 'if-match': z.string().optional() }),
  body: putStateBody,
  returns: { 200: stateSchema },
  doc: 'Replaces the state of a task between two turns',
})

export const createToken = route('POST /v1/tasks/:id/tokens', {
  ...{ tag, scope: 'tasks:read' },
  params,
  body: createTokenBody,
  returns: { 201: tokenResponse },
  doc: 'Creates a token for a task, for a browser',
})

export const revokeTokens = route('DELETE /v1/tasks/:id/tokens', {
  ...{ tag, scope: 'tasks:write' },
  params,
  query: revokeTokensQuery,
  returns: { 204: nothing },
  doc: 'Revokes the tokens of a task that were created before now',
})
