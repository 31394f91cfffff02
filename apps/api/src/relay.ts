/** Carries intents from the outbox to the queue, at once after a commit. What it cannot deliver stays in the outbox for the next time. */
import type { Dispatch, TurnQueue } from '@rivulet/broker'
import { plainTracer, type Tracer } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import { aboutTurn } from './about-turn.ts'
import type { Metrics } from './metrics.ts'
import type { Database } from './store/database.ts'
import { drainOutbox, type SentTurn } from './store/outbox.ts'

const batchSize = 100

export type Relay = {
  /** There may be something in the outbox. Does not wait. */
  kick(): void
  /** Sends everything that is there; answers what that was. */
  drain(): Promise<SentTurn[]>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export type RelayDeps = { db: Database; queue: TurnQueue; logger: FastifyBaseLogger; metrics: Metrics; tracer?: Tracer }

export function createRelay({ db, queue, logger, metrics, tracer = plainTracer }: RelayDeps): Relay {
  let running: Promise<void> | null = null
  let isKicked = false
  return { kick, drain, idle: async () => running ?? undefined }

  function kick(): void {
    isKicked = true
    running ??= drainKicked().finally(() => {
      running = null
      // Kicked after the last look and before this.
      if (isKicked) kick()
    })
  }

  async function drainKicked(): Promise<void> {
    while (isKicked) {
      isKicked = false
      try {
        await drain()
      } catch (error) {
        logger.warn({ err: error }, 'dispatch failed; the reconciler will try again')
      }
    }
  }

  async function drain(): Promise<SentTurn[]> {
    const sent: SentTurn[] = []
    for (;;) {
      const batch = await drainOutbox(db, batchSize, send)
      sent.push(...batch)
      metrics.dispatched.inc(batch.length)
      if (batch.length < batchSize) return sent
    }
  }

  async function send(dispatches: Dispatch[], turns: readonly SentTurn[]): Promise<void> {
    const spans = turns.map(({ traceparent, task, number, agent, dispatch }) => {
      const attributes = { 'rivulet.task': task, 'rivulet.turn': number, 'rivulet.agent': agent, 'rivulet.dispatch': dispatch }
      return tracer.start(`enqueue ${agent}`, { kind: 'producer', parent: traceparent, attributes })
    })
    try {
      await queue.enqueue(dispatches)
    } catch (error) {
      for (const span of spans) span.end({ failure: { code: 'dependency_unavailable' } })
      throw error
    }
    for (const span of spans) span.end()
    for (const turn of turns) logger.debug({ ...aboutTurn(turn), agent: turn.agent, dispatch: turn.dispatch }, 'turn sent to the queue')
  }
}
