/** What turns wait for: the inbox of a tenant, one wait, its answer, and signals. A response is sent only after the commit. */
import * as contract from '@rivulet/contract/waits'
import { waitAnswered } from '@rivulet/contract/waits'
import type { Json } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { orGiveBack } from '../../../access/open-streams.ts'
import type { Transaction } from '../../../store/connection/database.ts'
import type { TurnRow } from '../../../store/rows.ts'
import { answerWait, getWait } from '../../../store/waits/answer-wait.ts'
import { listWaits } from '../../../store/waits/list-waits.ts'
import { sendSignal } from '../../../store/waits/signals.ts'
import { answered } from '../../requests/answer-waits.ts'
import { createAudit } from '../../requests/audited.ts'
import { markReplay, respondOnce, sendResponse } from '../../requests/idempotent.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { EventStream } from './events.ts'

export function waitRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, waiting, config } = services
  const { note } = createAudit(services)

  serve(scope, contract.listWaits, async request => {
    const { tenant } = request.principal
    const { status, kind, agent, assignee, task, limit, cursor, ...rest } = request.query
    const metadata = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key.slice('metadata.'.length), String(value)]))
    const filter = { status, kind, agent, assignee, task, limit, cursor, metadata }
    return listWaits(services.listsFor(request.principal), tenant, filter, config.limits.pageBytes)
  })

  serve(scope, contract.getWait, async ({ params: { id, wait }, principal }) => ({
    wait: await getWait(databaseFor(principal), principal.tenant, id, wait),
  }))

  serve(scope, contract.answerWait, async (request, reply) => {
    const { id, wait } = request.params
    const { tenant, token } = request.principal
    const answer = { ...request.body, by: token?.subject ?? undefined }
    const dialect = events.dialectOf(request.query.format)
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
  })

  serve(scope, contract.sendSignal, async (request, reply) => {
    const { tenant } = request.principal
    const { id } = request.params
    let turn: TurnRow | null = null
    const send = async (tx: Transaction) => {
      turn = await sendSignal(tx, request.principal, id, request.body)
      const status = turn ? 'delivered' : 'kept'
      await note(request, { target: id, details: { status } })(tx)
      return { status: 202, body: { status } }
    }
    const response = await respondOnce(databaseFor(tenant), request, send, { task: id })
    if (turn) await waiting.changed(turn)
    return sendResponse(reply, response)
  })
}
