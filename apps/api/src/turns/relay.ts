/**
 * Sends intents from the outbox to the queue, at once after a commit. An intent that cannot be sent stays in the outbox, for the next send or
 * for the reconciler. Two processes may send the same intent: the queue ignores a job that exists, and a job that is delivered twice finds its
 * turn claimed.
 */
import type { TurnQueue } from '@rivulet/broker'
import { failpoint } from '@rivulet/runtime/failpoint'
import { plainTracer, type Tracer } from '@rivulet/runtime/trace'
import type { FastifyBaseLogger } from 'fastify'
import type { Database } from '../store/connection/database.ts'
import { drainOutbox, type Intent, removeIntents, type SentTurn } from '../store/tasks/outbox.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { aboutTurn } from './about-turn.ts'

const batchSize = 100

/** An older intent may be out of date: another process may have sent it, and the turn may have failed since. */
const freshMs = 1_000

export type Relay = {
  /** This intent was just committed, so it need not be looked for. Does not wait. */
  send(intent: Intent): void
  /** There may be something in the outbox. Does not wait. */
  kick(): void
  /** Sends every intent that is at least this old, and returns them. */
  drain(olderThanMs: number): Promise<SentTurn[]>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export type RelayDeps = { db: Database; queue: TurnQueue; logger: FastifyBaseLogger; metrics: Metrics; tracer?: Tracer }

export function createRelay({ db, queue, logger, metrics, tracer = plainTracer }: RelayDeps): Relay {
  const fresh: { intent: Intent; at: number }[] = []
  let running: Promise<void> | null = null
  let isKicked = false
  let hasFailed = false
  return { send, kick, drain, idle }

  async function idle(): Promise<void> {
    while (running) await running
  }

  function send(intent: Intent): void {
    fresh.push({ intent, at: performance.now() })
    run()
  }

  function kick(): void {
    isKicked = true
    run()
  }

  function run(): void {
    running ??= work().finally(() => {
      running = null
      // Something came after the last look and before this.
      if (hasWork()) run()
    })
  }

  function hasWork(): boolean {
    return isKicked || fresh.length > 0
  }

  async function work(): Promise<void> {
    // Those of the same tick come along.
    await null
    while (hasWork()) {
      if (fresh.length > 0) await attempt(sendFresh)
      if (isKicked) await attempt(drainKicked)
    }
  }

  async function attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step()
      // What could not be sent before lies in the outbox.
      if (hasFailed) isKicked = true
      hasFailed = false
    } catch (error) {
      hasFailed = true
      fresh.length = 0
      logger.warn({ err: error }, 'dispatch failed; the reconciler will retry')
    }
  }

  async function sendFresh(): Promise<void> {
    const batch = fresh.splice(0, batchSize)
    const intents = batch.filter(({ at }) => performance.now() - at < freshMs).map(({ intent }) => intent)
    if (intents.length < batch.length) isKicked = true
    if (intents.length === 0) return
    await enqueue(intents)
    await removeIntents(db, intents)
    metrics.dispatched.inc(intents.length)
  }

  async function drainKicked(): Promise<void> {
    isKicked = false
    await drain(0)
  }

  async function drain(olderThanMs: number): Promise<SentTurn[]> {
    const sent: SentTurn[] = []
    for (;;) {
      const batch = await drainOutbox(db, { limit: batchSize, olderThanMs }, enqueue)
      sent.push(...batch)
      metrics.dispatched.inc(batch.length)
      if (batch.length < batchSize) return sent
    }
  }

  async function enqueue(intents: readonly Intent[]): Promise<void> {
    const spans = intents.map(({ traceparent, task, number, agent, dispatch }) => {
      const attributes = { 'rivulet.task': task, 'rivulet.turn': number, 'rivulet.agent': agent, 'rivulet.dispatch': dispatch }
      return tracer.start(`enqueue ${agent}`, { kind: 'producer', parent: traceparent, attributes })
    })
    const dispatches = intents.map(({ turnId, agent, dispatch, priority, delayMs }) => ({ turnId, agent, dispatch, priority, delayMs }))
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
