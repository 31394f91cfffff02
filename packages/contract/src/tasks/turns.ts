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
  doc: 'Sends an input to a task, as a turn',
})

export const getTurn = route('GET /v1/tasks/:id/turns/:number', {
  ...reading,
  params: numbered,
  query: waiting,
  returns: { 200: turnAccepted.extend({ task: taskSchema.optional(), ...finished }), 202: underWay },
  doc: 'Returns a turn, at its end if the request waits for it',
})

export const listAttempts = route('GET /v1/tasks/:id/turns/:number/attempts', {
  ...reading,
  params: numbered,
  returns: { 200: z.object({ data: z.array(attemptSchema) }) },
  doc: 'Lists the attempts of a turn, the first one first',
})

// A retry discards what the turn emitted, so a token needs the right `rewind`, too.
export const retryTurn = route('POST /v1/tasks/:id/retry', {
  ...sending,
  params,
  body: z.strictObject({}).nullish(),
  returns: { 202: turnAccepted },
  doc: 'Runs the last turn of a task again, as a new turn',
})
