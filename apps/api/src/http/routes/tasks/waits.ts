/** What turns wait for: the inbox of a tenant, one wait, its answer, and signals. A response is sent only after the commit. */
import {
  answerBody,
  type Json,
  listWaitsQuery,
  signalBody,
  streamFormatSchema,
  taskIdSchema,
  turnWaitSchema,
  waitAnswered,
  waitIdSchema,
} from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { orGiveBack } from '../../../access/open-streams.ts'
import type { Transaction } from '../../../store/connection/database.ts'
import type { TurnRow } from '../../../store/rows.ts'
import { answerWait, getWait } from '../../../store/waits/answer-wait.ts'
import { listWaits } from '../../../store/waits/list-waits.ts'
import { sendSignal } from '../../../store/waits/signals.ts'
import { answered } from '../../requests/answer-waits.ts'
import { createAudit } from '../../requests/audited.ts'
import { markReplay, respondOnce, sendResponse } from '../../requests/idempotent.ts'
import type { Services } from '../../services.ts'
import { dialectOf, type EventStream } from './events.ts'

const tags = ['waits']
/** The rest of the turn, in this format, in place of the wait. */
const inFormat = z.strictObject({ format: streamFormatSchema.optional() })
const ofTask = z.object({ id: taskIdSchema })
const params = ofTask.extend({ wait: waitIdSchema })
const listing = { access: { scope: 'tasks:read', ofAgents: true } } as const
const reading = { access: { scope: 'tasks:read', token: ['read', 'answer'] } } as const
const answering = { access: { scope: 'tasks:write', token: ['answer'] } } as const
const signaling = { access: { scope: 'tasks:write', token: ['answer'] } } as const

export function waitRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, waiting, config } = services
  const { note } = createAudit(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const page = z.object({ data: z.array(turnWaitSchema), nextCursor: z.string().nullable() })

  app.get('/waits', { config: listing, schema: { tags, querystring: listWaitsQuery, response: { 200: page } } }, async request => {
    const { tenant } = request.principal
    const { status, kind, agent, assignee, task, limit, cursor, ...rest } = request.query
    const metadata = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key.slice('metadata.'.length), String(value)]))
    const filter = { status, kind, agent, assignee, task, limit, cursor, metadata }
    return listWaits(services.listsFor(request.principal), tenant, filter, config.limits.pageBytes)
  })

  app.get(
    '/tasks/:id/waits/:wait',
    { config: reading, schema: { tags, params, response: { 200: waitAnswered } } },
    async ({ params: { id, wait }, principal }) => ({ wait: await getWait(databaseFor(principal), principal.tenant, id, wait) }),
  )

  app.post(
    '/tasks/:id/waits/:wait/answer',
    { config: answering, schema: { tags, params, querystring: inFormat, body: answerBody, response: { 200: waitAnswered } } },
    async (request, reply) => {
      const { id, wait } = request.params
      const { tenant, token } = request.principal
      const answer = { ...request.body, by: token?.subject ?? undefined }
      const dialect = dialectOf(request.query.format)
      const admission = dialect ? events.reserve(request, id) : null
      let isRepeated = false
      let turn: TurnRow | null = null
      const close = async (tx: Transaction) => {
        const given = await answerWait(tx, request.principal, id, wait, answer)
        turn = given.turn
        isRepeated = turn === null
        if (turn) await note(request, answered(id, wait, answer))(tx)
        return { status: 200, body: { wait: given.wait } as Json }
      }
      const response = await orGiveBack(admission, respondOnce(databaseFor(tenant), request, close, { task: id }))
      if (turn) await waiting.changed(turn)
      markReplay(reply, isRepeated)
      if (!admission) return sendResponse(reply, response)
      const turnNumber = waitAnswered.parse(response.body).wait.turn
      return events.stream(id, reply, { cursor: null, isFollowing: false, dialect, turnNumber, isContinued: true }, admission)
    },
  )

  const sent = z.object({ status: z.enum(['delivered', 'kept']) })
  app.post(
    '/tasks/:id/signals',
    { config: signaling, schema: { tags, params: ofTask, body: signalBody, response: { 202: sent } } },
    async (request, reply) => {
      const { tenant } = request.principal
      const { id } = request.params
      let turn: TurnRow | null = null
      const send = async (tx: Transaction) => {
        turn = await sendSignal(tx, request.principal, id, request.body)
        return { status: 202, body: { status: turn ? 'delivered' : 'kept' } }
      }
      const response = await respondOnce(databaseFor(tenant), request, send, { task: id })
      if (turn) await waiting.changed(turn)
      return sendResponse(reply, response)
    },
  )
}
