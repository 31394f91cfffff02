/**
 * Whether there is room for new work: Redis has memory to spare, and not too many turns wait. Looked at once a second, never for a request.
 *
 * What runs goes on: only what is new is refused, early enough that what was accepted can end. What cannot be looked at refuses nobody: while
 * Redis is away tasks are accepted and wait, and without Postgres there is nothing to accept.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisMemory } from '@rivulet/broker'
import type { Database } from './store/database.ts'
import { countWaiting } from './store/waiting-turns.ts'

export type CapacityLimits = {
  /** Turns that are due and wait. */
  queuedTurns: number
  /** The part of Redis' `maxmemory` that may be used, 0 to 1. */
  redisMemory: number
}

export type Capacity = {
  /** Why no new work is taken, or null. */
  refusal(): string | null
  /** The part of its memory that Redis uses; null where it has no limit, or where that is not known. */
  redisMemory(): number | null
  /** Turns that are due and wait, counted up to the limit; null where that is not known. */
  waiting(): number | null
  close(): Promise<void>
}

export type CapacityDeps = {
  readMemory: () => Promise<RedisMemory>
  db: Database
  limits: CapacityLimits
  /** How often it is looked. Default 1,000. */
  sampleMs?: number
}

export function watchCapacity({ readMemory, db, limits, sampleMs = 1_000 }: CapacityDeps): Capacity {
  const stopping = new AbortController()
  let memory: number | null = null
  let waiting: number | null = null
  const watching = watch()

  return { refusal, redisMemory: () => memory, waiting: () => waiting, close }

  function refusal(): string | null {
    if (memory !== null && memory >= limits.redisMemory)
      return `MAX_REDIS_MEMORY_PERCENT: Redis uses ${Math.round(limits.redisMemory * 100)} % of its memory, too much for new work`
    if (waiting !== null && waiting >= limits.queuedTurns) return `MAX_QUEUED_TURNS: ${limits.queuedTurns} turns wait already`
    return null
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      const [used, due] = await Promise.all([readMemory().then(partOf, () => null), countWaiting(db, limits.queuedTurns).catch(() => null)])
      memory = used
      waiting = due
      await sleep(sampleMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  async function close(): Promise<void> {
    stopping.abort()
    await watching
  }
}

function partOf({ usedBytes, maxBytes }: RedisMemory): number | null {
  return maxBytes > 0 ? usedBytes / maxBytes : null
}
