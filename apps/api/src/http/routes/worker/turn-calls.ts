/** What a worker stores and reads while a turn runs: steps, waits, children, inputs that join, usage, and the history. */
import * as contract from '@rivulet/contract/worker'
import { claimHeaders } from '@rivulet/contract/worker'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { taskNotFound } from '../../../store/connection/tenant.ts'
import { type RequestOf, serve } from '../../serve.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import type { ComposedTurns } from './composed-turns.ts'
import { callOf } from './leases.ts'

export function workerTurnRoutes(scope: FastifyInstance, { steps, waits, useStore }: WorkerCalls, turns: ComposedTurns): void {
  const step = async (request: RequestOf<typeof contract.workerStep>) => {
    const { turn, claim, name, durationMs, records, ...memory } = request.body
    const body = { turnId: turn, claimId: claim, name, memory: JSON.stringify(memory), durationMs, usage: records }
    return steps.step(callOf(request, body))
  }
  serve(scope, contract.workerStep, step, steps.largeBody)

  serve(scope, contract.workerUsage, async request => {
    const { turn, claim, records } = request.body
    return steps.usage(callOf(request, { turnId: turn, claimId: claim, records }))
  })

  serve(scope, contract.workerTake, async request => {
    const { turn, claim, after, upTo } = request.body
    const read = await (await turns.compositionOf(request, request.body))?.read()
    if (!read) return { joined: null }
    const maxBytes = Math.max(0, read.composer.room())
    return steps.take(callOf(request, { turnId: turn, claimId: claim, after, ...(upTo !== undefined && { upTo }), maxBytes }))
  })

  serve(scope, contract.workerAsk, async request => {
    const { turn, claim, waits: wanted } = request.body
    const composition = await turns.compositionOf(request, request.body)
    const read = await composition?.read()
    if (!composition || !read) return { result: 'superseded' as const }
    if (read.place !== 'current') {
      const place = await turns.continueAt(request, request.body)
      return place ? { result: 'gap' as const, ...place } : { result: 'superseded' as const }
    }
    const index = composition.firstIndex() + read.composer.nextIndex()
    const asked = await waits.ask(callOf(request, { turnId: turn, claimId: claim, waits: wanted.map(wait => ({ ...wait, index })) }))
    if (asked.result !== 'asked') return asked
    return { result: 'asked' as const, waits: asked.waits, isInLog: asked.isTold }
  })

  serve(scope, contract.workerStore, async request => {
    const { turn, claim, call } = request.body
    return useStore(callOf(request, { turnId: turn, claimId: claim, call }))
  })

  serve(scope, contract.workerSpawn, async request => {
    const { turn, claim, children } = request.body
    const spawned = await waits.spawn(callOf(request, { turnId: turn, claimId: claim, children }))
    if (spawned.result !== 'spawned') return spawned
    const { isTold: isInLog, ...result } = spawned
    return { ...result, isInLog }
  })

  serve(scope, contract.workerWaits, async request => {
    const found = await waits.waits(callOf(request, claimOf(request)))
    if (!found.waits) throw taskNotFound()
    return { waits: found.waits }
  })

  serve(scope, contract.workerHistory, async request => {
    const { after, child } = request.query
    const own = { ...claimOf(request), ...(after !== undefined && { after }) }
    if (child !== undefined) return waits.child(callOf(request, { ...own, name: child }))
    const page = await steps.history(callOf(request, own))
    const composition = await turns.compositionOf(request, { turn: own.turnId, claim: own.claimId, epoch: 1 })
    const before = composition?.firstIndex() ?? 0
    const data = page.data.filter(({ index }) => index < before)
    return { data, nextCursor: data.length < page.data.length ? null : page.nextCursor }
  })
}

export function claimOf({ headers }: Pick<FastifyRequest, 'headers'>) {
  const head = claimHeaders.safeParse(headers)
  if (!head.success) throw new RivuletError('validation_failed', 'X-Turn-Id and X-Claim-Id must name a turn and its claim')
  return { turnId: head.data['x-turn-id'], claimId: head.data['x-claim-id'] }
}
