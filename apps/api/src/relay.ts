/** Carries intents from the outbox to the queue, at once after a commit. What it cannot deliver stays in the outbox for the next time. */
import type { TurnQueue } from '@rivulet/broker'
import type { FastifyBaseLogger } from 'fastify'
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

export type RelayDeps = { db: Database; queue: TurnQueue; logger: FastifyBaseLogger; metrics: Metrics }

export function createRelay({ db, queue, logger, metrics }: RelayDeps): Relay {
  let running: Promise<void> | null = null
  let isKicked = false
  return { kick, drain, idle: async () => running ?? undefined }

  function kick(): void {
    isKicked = true
    running ??= drainKicked().finally(() => {
      running = null
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
      const batch = await drainOutbox(db, batchSize, dispatches => queue.enqueue(dispatches))
      sent.push(...batch)
      metrics.dispatched.inc(batch.length)
      if (batch.length < batchSize) return sent
    }
  }
}
