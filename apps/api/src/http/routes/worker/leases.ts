/** How a worker keeps its turns, releases, parks and finishes them. */

import type { workerFinishBody, workerFinishResult, workerHeartbeatBody, workerHeartbeatResult } from '@rivulet/contract/worker'
import * as contract from '@rivulet/contract/worker'
import { endOf, sumUsage, type TurnId } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { findTurns } from '../../../store/reads/turns.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { Call, Caller } from '../internal/held-turns.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import { patience } from '../internal/polls.ts'
import type { ComposedTurns, HeldTurn } from './composed-turns.ts'

type Finish = z.output<typeof workerFinishBody>
type Beat = z.output<typeof workerHeartbeatBody>

export function workerLeaseRoutes(scope: FastifyInstance, services: Services, { leases, waits }: WorkerCalls, turns: ComposedTurns): void {
  const { db, hints } = services

  serve(scope, contract.workerHeartbeat, async (request, reply) => {
    const { body, principal } = request
    const given = patience(services, reply, body.waitMs)
    const renewed = await renew(request)
    if (renewed.lost.length > 0 || renewed.answered.length > 0 || given.aborted) return renewed
    // They may be about turns that were claimed after this call began.
    const { over, answered } = await hints.next(principal.key, body.worker, given)
    const within = await turns.reachedBy(request, [...over, ...answered])
    const lost = over.filter(turn => within.has(turn))
    return { lost, canceled: await canceledOf(lost), answered: answered.filter(turn => within.has(turn)) }
  })

  serve(scope, contract.workerRelease, async request => {
    const { turn, claim, epoch, blocked } = request.body
    const released = await leases.release(callOf(request, { turnId: turn, claimId: claim, epoch, ...(blocked && { blocked }) }))
    turns.forget(request.body)
    return released
  })

  serve(scope, contract.workerFinish, request => finish(request, request.body))

  serve(scope, contract.workerPark, async request => {
    const { body } = request
    const composition = await turns.compositionOf(request, body)
    const read = await composition?.read()
    if (composition && read && (read.place !== 'current' || read.number < body.last)) return gapFor(request, body)
    if (read?.composer.messages().some(({ status }) => status === 'streaming')) return { result: 'open_message' as const }
    const { turn, claim, epoch } = { ...body, ...(composition && { epoch: composition.epoch }) }
    const { result } = await waits.park(callOf(request, { turnId: turn, claimId: claim, epoch, n: read?.number ?? body.last }))
    if (result === 'gap') return gapFor(request, body, true)
    if (result !== 'answered') turns.forget(body)
    return { result }
  })

  async function renew({ principal, log, body }: Call<Beat>): Promise<z.output<typeof workerHeartbeatResult>> {
    const held = body.turns.map(({ turn, claim, epoch }) => ({ turnId: turn, claimId: claim, epoch }))
    const waiting = Object.fromEntries(body.turns.flatMap(({ turn, waiting: open }) => (open > 0 ? [[turn, open]] : [])))
    const { lost, answered } = await leases.heartbeat({ principal, log, body: { worker: body.worker, turns: held, fenced: 0, waiting } })
    const over = new Set(lost)
    for (const one of body.turns) if (over.has(one.turn)) turns.forget(one)
    return { lost, canceled: await canceledOf([...(await turns.reachedBy({ principal, log }, lost))]), answered }
  }

  async function canceledOf(lost: readonly string[]): Promise<TurnId[]> {
    const rows = lost.length > 0 ? await findTurns(db, lost) : []
    return rows.flatMap(row => (row && (row.status === 'canceled' || (row.canceling && row.stopReason === 'aborted')) ? [row.id] : []))
  }

  async function finish(caller: Caller, { turn, claim, epoch, last, ...ending }: Finish): Promise<z.output<typeof workerFinishResult>> {
    const held = { turn, claim, epoch }
    const composition = await turns.compositionOf(caller, held)
    const read = await composition?.read()
    if (read && (read.place !== 'current' || read.number < last)) return gapFor(caller, held)
    const messages = composition && read ? [...composition.kept(), ...read.composer.messages()] : []
    const { usage, stopReason } = endOf(messages)
    const sum = sumUsage([usage, ending.usage])
    const outcome = {
      ...ending,
      ...(ending.status === 'completed' && { stopReason: ending.stopReason ?? stopReason }),
      ...(sum && { usage: sum }),
    }
    const body = { turnId: turn, claimId: claim, epoch: composition?.epoch ?? epoch, outcome, n: read?.number ?? last }
    const { result } = await leases.finish(callOf(caller, body))
    if (result === 'gap') return gapFor(caller, held, true)
    turns.forget(held)
    return { result }
  }

  async function gapFor(caller: Caller, held: HeldTurn, isLost = false) {
    const place = await (isLost ? turns.reopen(caller, held) : turns.continueAt(caller, held))
    return place ? { result: 'gap' as const, ...place } : { result: 'superseded' as const }
  }
}

export function callOf<B>({ principal, log }: Caller, body: B): Call<B> {
  return { principal, log, body }
}
