/**
 * Decides whether the API accepts new work: Redis has free memory, not too many turns wait, and a tenant is within its quota. It is checked once
 * a second, not per request; for a tenant that is near its quota, also in the transaction of each turn, so that turns that come together do not exceed it.
 *
 * Running turns continue: only new work is rejected, early enough that accepted work can end. A limit that cannot be checked rejects nothing:
 * while Redis is unavailable, tasks are accepted and wait, and without Postgres no task can be accepted anyway.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisMemory } from '@rivulet/broker'
import { RivuletError } from '@rivulet/protocol'
import type { Database, Transaction } from '../store/connection/database.ts'
import { lockQuota } from '../store/connection/quota-lock.ts'
import { countUnfinished, countWaiting, exceedsTurns } from '../store/reads/waiting-turns.ts'

const sampleMs = 1_000
/** A tenant can add fewer turns than this between two checks. */
const nearTurns = 10_000

type CapacityLimits = {
  /** Turns that are due and wait. */
  queuedTurns: number
  /** Turns of one tenant that have not ended. */
  turnsPerTenant: number
  /** The part of Redis' `maxmemory` that may be used, 0 to 1. */
  redisMemory: number
}

export type Capacity = {
  /** Why no new work is taken, or null. */
  rejection(): RivuletError | null
  /** Why no more work of this tenant is taken, or null. */
  rejectionOf(tenant: string): RivuletError | null
  /** Whether turns of this tenant have to be admitted. */
  isNearQuota(tenant: string): boolean
  /** In the transaction that has added turns of this tenant, as its last step: rejects them if the tenant has more than it may. */
  admit(tx: Transaction, tenant: string): Promise<void>
  /** The part of its memory that Redis uses; null where it has no limit, or where that is not known. */
  redisMemory(): number | null
  /** Turns that are due and wait, counted up to the limit; null where that is not known. */
  waiting(): number | null
  close(): Promise<void>
}

type CapacityDeps = {
  readMemory: () => Promise<RedisMemory>
  db: Database
  limits: CapacityLimits
}

export function watchCapacity({ readMemory, db, limits }: CapacityDeps): Capacity {
  const stopping = new AbortController()
  let memory: number | null = null
  let waiting: number | null = null
  /** The unfinished turns of each tenant that is near its quota; null until they are counted. */
  let unfinished: ReadonlyMap<string, number> | null = null
  const watching = watch()

  return { rejection, rejectionOf, isNearQuota, admit, redisMemory: () => memory, waiting: () => waiting, close }

  function rejection(): RivuletError | null {
    if (memory !== null && memory >= limits.redisMemory) {
      const percent = Math.round(limits.redisMemory * 100)
      return new RivuletError(
        'overloaded',
        `Redis uses ${percent} % of its memory or more, so the API accepts no new work (MAX_REDIS_MEMORY_PERCENT)`,
      )
    }
    if (waiting !== null && waiting >= limits.queuedTurns)
      return new RivuletError('overloaded', `${limits.queuedTurns} turns are already waiting, the maximum (MAX_QUEUED_TURNS)`)
    return null
  }

  function rejectionOf(tenant: string): RivuletError | null {
    return (unfinished?.get(tenant) ?? 0) < limits.turnsPerTenant ? null : quotaExceeded()
  }

  function isNearQuota(tenant: string): boolean {
    return limits.turnsPerTenant <= nearTurns || !unfinished || unfinished.has(tenant)
  }

  async function admit(tx: Transaction, tenant: string): Promise<void> {
    if (!isNearQuota(tenant)) return
    await lockQuota(tx, tenant, 'turns')
    if (await exceedsTurns(tx, tenant, limits.turnsPerTenant)) throw quotaExceeded()
  }

  function quotaExceeded(): RivuletError {
    return new RivuletError(
      'quota_exceeded',
      `${limits.turnsPerTenant} turns of this tenant have not ended, the maximum (MAX_TURNS_PER_TENANT)`,
    )
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await Promise.all([lookAtMemory(), lookAtQueue(), lookAtTenants()])
      await sleep(sampleMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  async function lookAtMemory(): Promise<void> {
    memory = await readMemory().then(partOf, () => null)
  }

  async function lookAtQueue(): Promise<void> {
    waiting = await countWaiting(db, limits.queuedTurns).catch(() => null)
  }

  async function lookAtTenants(): Promise<void> {
    unfinished = await countUnfinished(db, Math.max(1, limits.turnsPerTenant - nearTurns)).catch(() => unfinished)
  }

  async function close(): Promise<void> {
    stopping.abort()
    await watching
  }
}

function partOf({ usedBytes, maxBytes }: RedisMemory): number | null {
  return maxBytes > 0 ? usedBytes / maxBytes : null
}
