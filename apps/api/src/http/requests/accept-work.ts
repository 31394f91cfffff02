/**
 * Accepts new work for the routes: whether its tenant has room for it, the two ways to commit a task, and its announcement.
 *
 * What the caller gets back, as JSON or as a stream, is decided by the route.
 */
import type { CreateTask, Json, JsonObject } from '@rivulet/protocol'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import type { OnceResponse } from '../../store/access/idempotency.ts'
import { toTask, toTurn } from '../../store/rows.ts'
import { type Accepted, createTask } from '../../store/tasks/accept/create-task.ts'
import { aboutTurn } from '../../turns/about-turn.ts'
import type { Services } from '../services.ts'
import { earlierResponse, keyOf, respondOnce } from './idempotent.ts'

export type AcceptedTask = {
  response: OnceResponse
  /** Absent when the answer was given before, under the same key. */
  work?: Accepted
  /** Sends the turn to the queue. */
  dispatch: () => void
}

export type AcceptWork = ReturnType<typeof createAcceptWork>

export function createAcceptWork(
  { databaseFor, acceptance, backlog, capacity, relay, announcing, metrics, config: { limits } }: Services,
  log: FastifyBaseLogger,
) {
  return { requireShare, acceptTask, announce }

  /** A request that is repeated under its key has its share already. */
  async function requireShare(request: FastifyRequest): Promise<void> {
    const { tenant } = request.principal
    const rejection = capacity.rejectionOf(tenant)
    if (rejection && !(await earlierResponse(databaseFor(tenant), request))) throw rejection
  }

  /** By the short way in one round trip where that is possible, else by the long one. */
  async function acceptTask(
    request: FastifyRequest,
    body: CreateTask,
    traceparent: string,
    inputMetadata?: JsonObject,
  ): Promise<AcceptedTask> {
    const { tenant } = request.principal
    const { agent, concurrencyKey = null, delayMs } = body
    const rank = delayMs === 0 ? backlog.takeDirect({ tenant, agent, concurrencyKey }) : null
    const fresh = await acceptance.accept(tenant, body, keyOf(request), { traceparent, rank })
    if (fresh) {
      const { accepted: work, intent } = fresh
      return { response: { ...fresh.response, replayed: false }, work, dispatch: intent ? () => relay.send(intent) : relay.kick }
    }
    let work: Accepted | undefined
    const response = await respondOnce(databaseFor(tenant), request, async tx => {
      work = await createTask(tx, tenant, body, limits.queuedTurns, traceparent, inputMetadata)
      const { task, turn, isNew } = work
      return { status: isNew ? 201 : 200, body: { task: toTask(task), ...(turn && { turn: toTurn(turn) }) } as Json }
    })
    return { response, ...(work && { work }), dispatch: relay.kick }
  }

  async function announce({ task, turn, isNew, isQueued }: Accepted): Promise<void> {
    if (isNew) metrics.tasks.inc()
    if (!isQueued) return
    log.debug({ ...aboutTurn(turn), agent: task.agent }, 'turn accepted')
    // Before the first turn of an import or a fork come others, which are in Postgres alone.
    await announcing.announceQueued(turn, isNew && turn.number === 1)
    // A rewind has restored the state.
    if (turn.discardsFrom !== null) await announcing.announceState(turn.task)
  }
}
