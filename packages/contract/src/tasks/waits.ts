/** What turns wait for: the inbox of a tenant, one wait, its answer, and signals. */
import {
  agentNameSchema,
  jsonSchema,
  maxAnswerBytes,
  taskIdSchema,
  turnWaitSchema,
  utf8Length,
  waitActionSchema,
  waitIdSchema,
  waitKindSchema,
  waitStatusSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { pageOf, route } from '../route.ts'
import { pageLimit, withMetadata } from '../values.ts'
import { streamFormatSchema, params as task, waitName } from './fields.ts'

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

export const signalBody = z.strictObject({ name: waitName, data: answerContent.default(null) })
export const waitAnswered = z.object({ wait: turnWaitSchema })

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

export const listWaitsQuery = withMetadata(waitFilters)

const tag = 'waits'
const answering = { tag, scope: 'tasks:write', token: ['answer'] } as const
const params = task.extend({ wait: waitIdSchema })

export const listWaits = route('GET /v1/waits', {
  ...{ tag, scope: 'tasks:read', ofAgents: true },
  query: listWaitsQuery,
  returns: { 200: pageOf(turnWaitSchema) },
  errors: ['overloaded'],
  doc: 'Lists what turns wait for, the oldest first',
})

export const getWait = route('GET /v1/tasks/:id/waits/:wait', {
  ...{ tag, scope: 'tasks:read', token: ['read', 'answer'] },
  params,
  returns: { 200: waitAnswered },
  errors: ['task_not_found', 'not_found'],
  doc: 'Returns one wait of a task',
})

export const answerWait = route('POST /v1/tasks/:id/waits/:wait/answer', {
  ...answering,
  params,
  // The rest of the turn, in this format, in place of the wait.
  query: z.strictObject({ format: streamFormatSchema.optional() }),
  body: answerBody,
  returns: { 200: waitAnswered },
  idempotencyKey: 'kept',
  audited: 'wait.answered',
  errors: ['task_not_found', 'not_found', 'already_answered', 'wait_closed', 'too_many_streams', 'overloaded'],
  doc: 'Closes a wait with an answer, so that its turn continues',
  note: 'After the commit',
})

export const sendSignal = route('POST /v1/tasks/:id/signals', {
  ...answering,
  params: task,
  body: signalBody,
  returns: { 202: z.object({ status: z.enum(['delivered', 'kept']) }) },
  idempotencyKey: 'kept',
  audited: 'signal.sent',
  errors: ['task_not_found', 'too_many_signals'],
  doc: 'Sends a signal to a task; it is kept until a turn waits for it',
})

export type ListWaits = z.output<typeof listWaitsQuery>
export type AnswerBody = z.output<typeof answerBody>
export type SignalBody = z.output<typeof signalBody>
