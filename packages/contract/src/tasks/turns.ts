/** The turns of a task. */
import {
  jsonSchema,
  messageSchema,
  omittedSchema,
  taskSchema,
  turnFailureSchema,
  turnSchema,
  turnStatusSchema,
  usageSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { route } from '../route.ts'
import { turnNumberSchema, waitSchema, wholeUpTo } from '../values.ts'
import { accepted, day, finished, hour, inputsSchema, params, secretsSchema, underWay } from './fields.ts'

const time = z.iso.datetime()

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

export type IfBusy = z.output<typeof ifBusySchema>
export type CreateTurn = z.output<typeof createTurnBody>
export type CreateTurnInput = z.input<typeof createTurnBody>

export type Attempt = z.output<typeof attemptSchema>
