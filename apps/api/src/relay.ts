/** Carries intents from the outbox to the queue, at once after a commit. What it cannot deliver stays in the outbox for the next time. */
import type { TurnQueue } from '@rivulet/broker'
import { plainTracer, type Tracer } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import { aboutTurn } from './about-turn.ts'
import type { Metrics } from './metrics.ts'
import type { Database } from './store/database.ts'
import { drainOutbox, type Intent, removeIntents, type SentTurn } from './store/outbox.ts'

const batchSize = 100

export type Relay = {
  /** This intent was just committed, so it need not be looked for. Does not wait. */
  send(intent: Intent): void
  /** There may be something in the outbox. Does not wait. */
  kick(): void
  /** Sends everything that has been there for so long; answers what that was. */
  drain(olderThanMs: number): Promise<SentTurn[]>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export type RelayDeps = { db: Database; queue: TurnQueue; logger: FastifyBaseLogger; metrics: Metrics; tracer?: Tracer }

export function createRelay({ db, queue, logger, metrics, tracer = plainTracer }: RelayDeps): Relay {
  const fresh: Intent[] = []
  let running: Promise<void> | null = null
  let isKicked = false
  return { send, kick, drain, idle: async () => running ?? undefined }

  function send(intent: Intent): void {
    fresh.push(intent)
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
    while (hasWork()) {
      try {
        await (fresh.length > 0 ? sendFresh() : drainKicked())
      } catch (error) {
        logger.warn({ err: error }, 'dispatch failed; the reconciler will try again')
      }
    }
  }

  async function sendFresh(): Promise<void> {
    const batch = fresh.splice(0, batchSize)
    await enqueue(batch)
    await removeIntents(db, batch)
    metrics.dispatched.inc(batch.length)
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
    const now = Date.now()
    const dispatches = intents.map(({ turn, agent, dispatch, priority, runAt }) => {
      return { turn, agent, dispatch, priority, delayMs: Math.max(0, runAt.getTime() - now) }
    })
    // failpoint: enqueuing
    try {
      await queue.enqueue(dispatches)
    } catch (error) {
      for (const span of spans) span.end({ failure: { code: 'dependency_unavailable' } })
      throw error
    }
    for (const span of spans) span.end()
    // failpoint: enqueued
    for (const turn of intents) logger.debug({ ...aboutTurn(turn), agent: turn.agent, dispatch: turn.dispatch }, 'turn sent to the queue')
  }
}
