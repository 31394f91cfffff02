/**
 * Accepts new work for the routes: checks that its tenant has room for it, commits it within the span of its request, and announces it.
 *
 * What the caller gets back, as JSON or as a stream, is decided by the route.
 */
import type { CreateTask } from '@rivulet/contract/tasks'
import type { Json, JsonObject, TaskId } from '@rivulet/protocol'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import { mayUse } from '../../access/principal.ts'
import type { OnceResponse, StoredResponse } from '../../store/access/idempotency.ts'
import { unknownAgent } from '../../store/agents/agents.ts'
import type { Transaction } from '../../store/connection/database.ts'
import { sealOnEnd } from '../../store/feed/on-end-secrets.ts'
import { toTask, toTurn } from '../../store/rows.ts'
import { type Accepted, type AcceptedTurn, createTask } from '../../store/tasks/accept/create-task.ts'
import { storeSecrets } from '../../store/tasks/task-secrets.ts'
import { aboutTurn } from '../../turns/about-turn.ts'
import type { Services } from '../services.ts'
import { changesBy, createAudit } from './audited.ts'
import { earlierResponse, keyOf, respondOnce } from './idempotent.ts'
import { startRequestSpan } from './request-span.ts'

export type AcceptedWork = {
  response: OnceResponse
  /** Absent when the response was sent before, under the same key. */
  work?: Accepted | AcceptedTurn
  /** Sends the turn to the queue. */
  dispatch: () => void
}

export function createAcceptWork(services: Services, log: FastifyBaseLogger) {
  const { databaseFor, acceptance, backlog, capacity, relay, announcing, waiting, metrics, tracer, vault } = services
  const { limits } = services.config
  const { note } = createAudit(services)
  return { requireShare, accept, commitTask, commitTurn }

  /** A request that is repeated under its key has its share already. */
  async function requireShare(request: FastifyRequest): Promise<void> {
    const { tenant } = request.principal
    const rejection = capacity.rejectionOf(tenant)
    if (rejection && !(await earlierResponse(databaseFor(tenant), request))) throw rejection
  }

  /** @param job `held`: the caller dispatches it, after its viewer is there. */
  async function accept(
    request: FastifyRequest,
    commit: (traceparent: string) => Promise<AcceptedWork>,
    job: 'dispatched' | 'held' = 'dispatched',
  ): Promise<AcceptedWork> {
    const span = startRequestSpan(tracer, request)
    const accepted = await commit(span.traceparent).catch(span.refused)
    const { work, dispatch } = accepted
    if (job === 'dispatched') dispatch()
    if (work && 'declined' in work && work.declined) await waiting.changed(work.declined)
    if (work) await announce(work)
    span.accepted(work)
    return accepted
  }

  /** By the short way in one round trip where that is possible, else by the long one. */
  async function commitTask(
    request: FastifyRequest,
    given: CreateTask,
    traceparent: string,
    inputMetadata?: JsonObject,
  ): Promise<AcceptedWork> {
    const { tenant } = request.principal
    const body = sealOnEnd(vault, tenant, given)
    const { agent, concurrencyKey = null, delayMs } = body
    if (!mayUse(request.principal, agent)) throw unknownAgent()
    const rank = delayMs === 0 ? backlog.takeDirect({ tenant, agent, concurrencyKey }) : null
    const fresh = capacity.isNearQuota(tenant) ? null : await acceptance.accept(tenant, body, keyOf(request), { traceparent, rank })
    if (fresh) {
      const { accepted: work, intent } = fresh
      return { response: { ...fresh.response, replayed: false }, work, dispatch: intent ? () => relay.send(intent) : relay.kick }
    }
    const sealed = body.secrets && vault.seal(tenant, body.secrets)
    return commitTurn(
      request,
      async tx => {
        const work = await createTask(tx, tenant, body, limits.queuedTurns, traceparent, inputMetadata)
        const { task, turn, isNew, isQueued } = work
        // With a task that exists already, they are those of its next turn, like params.
        if (!sealed || !(isNew || isQueued)) return work
        await storeSecrets(tx, task, isNew ? null : turn, sealed)
        await note(request, { action: 'secrets.set', target: task.id })(tx)
        return work
      },
      ({ task, turn, isNew }) => ({ status: isNew ? 201 : 200, body: { task: toTask(task), ...(turn && { turn: toTurn(turn) }) } as Json }),
      null,
    )
  }

  /**
   * In a transaction with the response, which a repeated request gets again.
   *
   * @param held the task whose row it holds from its beginning; null for a new one
   */
  async function commitTurn<Work extends Accepted>(
    request: FastifyRequest,
    commit: (tx: Transaction) => Promise<Work>,
    respond: (work: Work) => StoredResponse,
    held: TaskId | null,
  ): Promise<AcceptedWork> {
    let work: Work | undefined
    const commitOnce = async (tx: Transaction) => {
      work = await commit(tx)
      if (work.isQueued) await capacity.admit(tx, request.principal.tenant)
      for (const change of changesBy(work)) await note(request, change)(tx)
      return respond(work)
    }
    const response = await respondOnce(databaseFor(request.principal.tenant), request, commitOnce, { task: held })
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
