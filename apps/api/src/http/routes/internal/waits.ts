/** What a turn waits for: how a worker asks, spawns children, reads what became of both, and parks the turn. */

import type { AskBody, childBody, ParkBody, SpawnBody, waitsBody } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/internal'
import { maxPageSize } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { reachOf } from '../../../access/principal.ts'
import { findChild } from '../../../store/children/child-ends.ts'
import { listMessages } from '../../../store/reads/messages.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { Call, HeldTurns } from './held-turns.ts'

export type WaitCalls = ReturnType<typeof createWaitCalls>

export function workerWaitRoutes(scope: FastifyInstance, { ask, spawn, child, waits, park }: WaitCalls): void {
  serve(scope, contract.askCaller, ask)
  serve(scope, contract.spawnChildren, spawn)
  serve(scope, contract.readChild, child)
  serve(scope, contract.readWaits, waits)
  serve(scope, contract.parkTurn, park)
}

export function createWaitCalls(services: Services, { reaches, findReached, requireHeldTask }: HeldTurns) {
  const { db, waiting, childTasks, spilling, metrics } = services
  const { limits } = services.config
  return { ask, spawn, child, waits, park }

  async function ask(request: Call<AskBody>) {
    const { body } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const asked = await waiting.ask(body)
    if (asked.result === 'superseded') metrics.fenced.inc({ write: 'ask' })
    return asked
  }

  async function spawn(request: Call<SpawnBody>) {
    const { body } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const spawned = await childTasks.spawn(body, reachOf(request.principal).agents)
    if (spawned.result === 'superseded') metrics.fenced.inc({ write: 'spawn' })
    return spawned
  }

  async function child(request: Call<z.output<typeof childBody>>) {
    const { turnId, claimId, name, after } = request.body
    const held = await requireHeldTask(request, turnId, claimId)
    const child = await findChild(db, turnId, name)
    if (!child) return { data: [], nextCursor: null }
    const page = await listMessages(db, held.tenant, child, { after, turn: 1, limit: maxPageSize }, limits.pageBytes)
    return spilling.putBack(db, held.tenant, page, limits.pageBytes)
  }

  async function waits(request: Call<z.output<typeof waitsBody>>) {
    const { turnId, claimId } = request.body
    return { waits: (await reaches(request, turnId)) ? await waiting.read(turnId, claimId) : null }
  }

  async function park(request: Call<Omit<ParkBody, 'digest'> & { digest?: string }>) {
    const turn = await findReached(request, request.body.turnId)
    const result = turn ? await waiting.park(turn, request.body) : 'superseded'
    if (result === 'superseded') metrics.fenced.inc({ write: 'park' })
    if (failpoint) await failpoint('park answering')
    return { result }
  }
}
