/**
 * Sends intents from the outbox to the queue, at once after a commit. Turns that wait for a share of their agent's workers are picked by rank, so that
 * the queue stays short. An intent that cannot be sent stays in the outbox, for the next send or for the reconciler. Two processes may send the same
 * intent: the queue ignores a job that exists, and a worker that gets a job a second time finds its turn claimed.
 */
import type { TurnQueue } from '@rivulet/broker'
import { failpoint } from '@rivulet/runtime/failpoint'
import { plainTracer, type Tracer } from '@rivulet/runtime/trace'
import type { FastifyBaseLogger } from 'fastify'
import type { Database } from '../store/connection/database.ts'
import { drainOutbox, type Intent, removeIntents, type SentTurn } from '../store/tasks/outbox.ts'
import { type Picked, type PickOptions, pickTurns, waitingAgents } from '../store/turns/pick-turns.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { aboutTurn } from './about-turn.ts'
import { type Backlog, queueAhead } from './backlog.ts'

const batchSize = 100

/** An older intent may be out of date: another process may have sent it, and the turn may have failed since. */
const freshMs = 1_000

export type Relay = {
  /** This intent was just committed, so it need not be looked for. Does not wait. */
  send(intent: Intent): void
  /** There may be something in the outbox. Does not wait. */
  kick(): void
  /** Turns of this agent wait, and there may be room for them. Does not wait. */
  refill(agent: string): void
  /** Sends every intent that is at least this old, and returns them. */
  drain(olderThanMs: number): Promise<SentTurn[]>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

type RelayDeps = {
  db: Database
  queue: TurnQueue
  backlog: Pick<Backlog, 'keepsSpare' | 'noteSent' | 'notePick'>
  workerTimeoutMs: PickOptions['workerTimeoutMs']
  logger: FastifyBaseLogger
  metrics: Metrics
  tracer?: Tracer
}

export function createRelay({ db, queue, backlog, workerTimeoutMs, logger, metrics, tracer = plainTracer }: RelayDeps): Relay {
  const fresh: { intent: Intent; at: number }[] = []
  /** The ids of intents that are being sent. */
  const underway = new Set<number>()
  /** Agents that may have room for waiting turns. */
  const refilled = new Set<string>()
  let isKicked = false
  let hasFailed = false
  // Side by side: a turn that has its share does not wait for the pick of others.
  const sending = createLoop(
    () => fresh.length > 0,
    () => attempt(sendFresh),
  )
  const draining = createLoop(
    () => isKicked || refilled.size > 0,
    () => attempt(isKicked ? drainKicked : pickRefilled),
  )
  return { send, kick, refill, drain, idle }

  async function idle(): Promise<void> {
    while (sending.isRunning() || draining.isRunning()) await Promise.all([sending.idle(), draining.idle()])
  }

  function send(intent: Intent): void {
    fresh.push({ intent, at: performance.now() })
    underway.add(intent.id)
    sending.run()
  }

  function kick(): void {
    isKicked = true
    draining.run()
  }

  function refill(agent: string): void {
    refilled.add(agent)
    draining.run()
  }

  async function attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step()
      // What could not be sent before lies in the outbox.
      if (hasFailed) kick()
      hasFailed = false
    } catch (error) {
      hasFailed = true
      fresh.length = 0
      underway.clear()
      logger.warn({ err: error }, 'dispatch failed; the reconciler will retry')
    }
  }

  async function sendFresh(): Promise<void> {
    const batch = fresh.splice(0, batchSize)
    const intents = batch.filter(({ at }) => performance.now() - at < freshMs).map(({ intent }) => intent)
    if (intents.length > 0) {
      await enqueue(intents)
      await removeIntents(db, intents)
      metrics.dispatched.inc(intents.length)
    }
    for (const { intent } of batch) underway.delete(intent.id)
    if (intents.length < batch.length) kick()
  }

  async function drainKicked(): Promise<void> {
    isKicked = false
    refilled.clear()
    await drain(0)
  }

  async function pickRefilled(): Promise<void> {
    const agents = [...refilled]
    refilled.clear()
    for (const agent of agents) await pick(agent)
  }

  async function drain(olderThanMs: number): Promise<SentTurn[]> {
    const sent: SentTurn[] = []
    for (;;) {
      const batch = await drainOutbox(db, { limit: batchSize, olderThanMs, except: [...underway] }, enqueue)
      sent.push(...batch)
      metrics.dispatched.inc(batch.length)
      if (batch.length < batchSize) break
    }
    for (const agent of await waitingAgents(db)) sent.push(...(await pick(agent)))
    return sent
  }

  /** The picked turns are committed as such before they are sent, because a worker may claim a turn as soon as it is in the queue. */
  async function pick(agent: string): Promise<SentTurn[]> {
    const sent: Picked[] = []
    for (;;) {
      const picking = await pickTurns(db, agent, { ahead: queueAhead, keepsSpare: backlog.keepsSpare(agent), workerTimeoutMs })
      const { picked } = picking
      backlog.notePick(agent, picking)
      const intents = picked.filter(({ isGone }) => !isGone)
      if (intents.length > 0) await enqueue(intents)
      for (const _ of intents) backlog.noteSent(agent)
      if (picked.length > 0) await removeIntents(db, picked)
      metrics.dispatched.inc(intents.length)
      sent.push(...intents)
      // Turns that have ended meanwhile took the places of others.
      if (picked.length === intents.length) return sent
    }
  }

  async function enqueue(intents: readonly Intent[]): Promise<void> {
    const spans = intents.map(({ traceparent, task, number, agent, dispatch }) => {
      const attributes = { 'rivulet.task': task, 'rivulet.turn': number, 'rivulet.agent': agent, 'rivulet.dispatch': dispatch }
      return tracer.start(`enqueue ${agent}`, { kind: 'producer', parent: traceparent, attributes })
    })
    // The rank of a turn that was accepted directly and could not be sent at once is lost: it goes behind those that were.
    const dispatches = intents.map(({ turnId, agent, dispatch, priority, rank = queueAhead, delayMs }) => ({
      ...{ turnId, agent, dispatch, priority, rank, delayMs },
    }))
    if (failpoint) await failpoint('enqueuing')
    try {
      await queue.enqueue(dispatches)
    } catch (error) {
      for (const span of spans) span.end({ failure: { code: 'dependency_unavailable' } })
      throw error
    }
    for (const span of spans) span.end()
    if (failpoint) await failpoint('enqueued')
    for (const turn of intents) logger.debug({ ...aboutTurn(turn), agent: turn.agent, dispatch: turn.dispatch }, 'turn sent to the queue')
  }
}

/** Repeats the step while there is work, one at a time. */
function createLoop(hasWork: () => boolean, step: () => Promise<void>) {
  let running: Promise<void> | null = null
  return { run, isRunning: () => running !== null, idle: async () => running }

  function run(): void {
    running ??= work().finally(() => {
      running = null
      // Something came after the last look and before this.
      if (hasWork()) run()
    })
  }

  async function work(): Promise<void> {
    // Those of the same tick come along.
    await null
    while (hasWork()) await step()
  }
}
