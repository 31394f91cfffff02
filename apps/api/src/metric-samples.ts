/**
 * What is not counted as it happens but looked at when somebody asks: queues, connections, what waits for viewers.
 *
 * Postgres is asked at most once in `freshMs`, however many scrape. Where it does not answer, its figures are left out, so that a graph shows a
 * hole instead of an old value, and the others are told all the same.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { Capacity } from './capacity.ts'
import type { Hub } from './hub.ts'
import type { Metrics } from './metrics.ts'
import type { Database } from './store/database.ts'
import { readQueues } from './store/queues.ts'

const freshMs = 2_000
/** Less than the patience of whoever scrapes. */
const patienceMs = 2_000

export type MetricSources = { metrics: Metrics; db: Database; pools: Record<string, Pool>; hub: Hub; capacity: Capacity; leaseMs: number }

/** Answers what brings the gauges up to date. */
export function createMetricSamples({ metrics, db, pools, hub, capacity, leaseMs }: MetricSources): () => Promise<void> {
  let askedAt = Number.NEGATIVE_INFINITY
  let asked: Promise<void> = Promise.resolve()
  return sample

  async function sample(): Promise<void> {
    for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
      metrics.pool.set({ pool, state: 'in_use' }, totalCount - idleCount)
      metrics.pool.set({ pool, state: 'idle' }, idleCount)
      metrics.pool.set({ pool, state: 'waiting' }, waitingCount)
    }
    const memory = capacity.redisMemory()
    if (memory === null) metrics.redisMemory.remove()
    else metrics.redisMemory.set(memory)
    const { blocked, unsentBytes } = hub.pressure()
    metrics.blockedViewers.set(blocked)
    metrics.unsentBytes.set(unsentBytes)
    sampleQueues()
    await Promise.race([asked, sleep(patienceMs, undefined, { ref: false })])
  }

  function sampleQueues(): void {
    if (performance.now() - askedAt < freshMs) return
    askedAt = performance.now()
    asked = readQueues(db, leaseMs).then(set, () => set([]))
  }

  function set(queues: Awaited<ReturnType<typeof readQueues>>): void {
    for (const gauge of [metrics.queued, metrics.oldestQueued, metrics.running, metrics.workers]) gauge.reset()
    const oldest = new Map<string, number>()
    for (const { agent: name, queued, oldestMs, running, workers } of queues) {
      const agent = metrics.agentLabel(name)
      metrics.queued.inc({ agent }, queued)
      metrics.running.inc({ agent }, running)
      metrics.workers.inc({ agent }, workers)
      oldest.set(agent, Math.max(oldestMs, oldest.get(agent) ?? 0))
    }
    for (const [agent, ms] of oldest) metrics.oldestQueued.set({ agent }, ms / 1_000)
  }
}
