/** The turns of a task. */
import { attemptSchema, createTurnBody, taskSchema, turnNumberSchema, turnSchema, waitSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from '../route.ts'
import { accepted, finished, params, underWay } from './tasks.ts'

const tag = 'tasks'
const sending = { tag, scope: 'tasks:write', token: 'send', addsWork: true } as const
const reading = { tag, scope: 'tasks:read', token: 'read' } as const
const numbered = params.extend({ number: turnNumberSchema })
const waiting = z.strictObject({ wait: waitSchema.optional() })
export const turnAccepted = z.object({ turn: turnSchema })

export const createTurn = route('POST /v1/tasks/:id/turns', {
  ...sending,
  params,
  query: waiting,
  body: createTurnBody,
  returns: { 200: accepted.extend(finished), 202: turnAccepted.extend(underWay.partial().shape) },
  idempotencyKey: 'kept',
  errors: ['task_not_found', 'not_found', 'task_busy', 'too_many_turns', 'quota_exceeded', 'too_many_streams'],
  doc: 'Sends an input to a task, as a turn',
  note: '[With `wait`](#waiting-for-the-end-of-a-turn) 200, with its messages',
})

export const getTurn = route('GET /v1/tasks/:id/turns/:number', {
  ...reading,
  params: numbered,
  query: waiting,
  returns: { 200: turnAccepted.extend({ task: taskSchema.optional(), ...finished }), 202: underWay },
  errors: ['task_not_found', 'not_found', 'too_many_streams', 'overloaded'],
  doc: 'Returns a turn, at its end if the request waits for it',
  note: '[With `wait`](#waiting-for-the-end-of-a-turn), its messages too',
})

export const listAttempts = route('GET /v1/tasks/:id/turns/:number/attempts', {
  ...reading,
  params: numbered,
  returns: { 200: z.object({ data: z.array(attemptSchema) }) },
  errors: ['task_not_found', 'not_found'],
  doc: 'Lists the attempts of a turn, the first one first',
})

// A retry discards what the turn emitted, so `send` is not enough.
export const retryTurn = route('POST /v1/tasks/:id/retry', {
  ...sending,
  params,
  body: z.strictObject({}).nullish(),
  returns: { 202: turnAccepted },
  tokenAlso: 'rewind',
  idempotencyKey: 'kept',
  audited: 'task.rewound',
  errors: ['task_not_found', 'not_found', 'task_busy', 'too_many_turns', 'quota_exceeded'],
  doc: 'Runs the last turn of a task again, as a new turn',
  note: 'A new turn after the one before the last, with the same inputs and params; the last one is [discarded](#rewind)',
})
