/** What a turn waits for: how a worker asks, spawns children, reads what became of both, and parks the turn. */
import {
  askBody,
  askResult,
  childBody,
  historyResult,
  maxPageSize,
  parkBody,
  parkResult,
  spawnBody,
  spawnResult,
  waitsBody,
  waitsResult,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { reachOf } from '../../../access/principal.ts'
import { findChild } from '../../../store/children/child-ends.ts'
import { listMessages } from '../../../store/reads/messages.ts'
import type { Services } from '../../services.ts'
import { config, type HeldTurns, tags } from './held-turns.ts'

export function workerWaitRoutes(scope: FastifyInstance, services: Services, { reaches, findReached, requireHeldTask }: HeldTurns): void {
  const { db, waiting, childTasks, spilling, metrics } = services
  const { limits } = services.config
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.post('/ask', { config, schema: { tags, body: askBody, response: { 200: askResult } } }, async request => {
    const { body } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const asked = await waiting.ask(body)
    if (asked.result === 'superseded') metrics.fenced.inc({ write: 'ask' })
    return asked
  })

  app.post('/spawn', { config, schema: { tags, body: spawnBody, response: { 200: spawnResult } } }, async request => {
    const { body } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const spawned = await childTasks.spawn(body, reachOf(request.principal).agents)
    if (spawned.result === 'superseded') metrics.fenced.inc({ write: 'spawn' })
    return spawned
  })

  app.post('/child', { config, schema: { tags, body: childBody, response: { 200: historyResult } } }, async request => {
    const { turnId, claimId, name, after } = request.body
    const held = await requireHeldTask(request, turnId, claimId)
    const child = await findChild(db, turnId, name)
    if (!child) return { data: [], nextCursor: null }
    const page = await listMessages(db, held.tenant, child, { after, turn: 1, limit: maxPageSize }, limits.pageBytes)
    return spilling.putBack(db, held.tenant, page, limits.pageBytes)
  })

  app.post('/waits', { config, schema: { tags, body: waitsBody, response: { 200: waitsResult } } }, async request => {
    const { turnId, claimId } = request.body
    return { waits: (await reaches(request, turnId)) ? await waiting.read(turnId, claimId) : null }
  })

  app.post('/park', { config, schema: { tags, body: parkBody, response: { 200: parkResult } } }, async request => {
    const turn = await findReached(request, request.body.turnId)
    const result = turn ? await waiting.park(turn, request.body) : 'superseded'
    if (result === 'superseded') metrics.fenced.inc({ write: 'park' })
    if (failpoint) await failpoint('park answering')
    return { result }
  })
}
