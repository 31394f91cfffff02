/**
 * Gauges that are read when a scraper asks: queues, open waits, connections, the memory of Redis, bytes that wait for viewers.
 *
 * The API queries Postgres at most once in `freshMs`, however many scrapers ask. If Postgres does not reply, its gauges are left out, so that a
 * graph shows a hole instead of an old value; all other gauges are still reported.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readQueues } from '../store/agents/queues.ts'
import { listVersions } from '../store/agents/versions.ts'
import type { Database, DatabaseHandle } from '../store/connection/database.ts'
import { everyTenant } from '../store/connection/tenant.ts'
import { readHeldFeed } from '../store/feed/held-feed.ts'
import { countOpenWaits } from '../store/waits/list-waits.ts'
import type { Metrics } from './metrics.ts'

const freshMs = 2_000
/** Shorter than a scraper's own timeout. */
const patienceMs = 2_000

type MetricSources = {
  metrics: Metrics
  db: Database
  database: Pick<DatabaseHandle, 'pools' | 'waitingForShare'>
  writers: { pressure(): { blocked: number; unsentBytes: number } }
  capacity: { redisMemory(): number | null }
  backlog: { spareSlots(): ReadonlyMap<string, number> }
  leaseMs: number
}

/** Returns the function that brings the gauges up to date. */
export function createMetricSamples({ metrics, db, database, writers, capacity, backlog, leaseMs }: MetricSources): () => Promise<void> {
  let askedAt = Number.NEGATIVE_INFINITY
  let asked: Promise<void> = Promise.resolve()
  return sample

  async function sample(): Promise<void> {
    const waiting = new Map(Object.entries(database.waitingForShare()))
    for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(database.pools)) {
      metrics.pool.set({ pool, state: 'in_use' }, totalCount - idleCount)
      metrics.pool.set({ pool, state: 'idle' }, idleCount)
      metrics.pool.set({ pool, state: 'waiting' }, waitingCount + (waiting.get(pool) ?? 0))
    }
    const memory = capacity.redisMemory()
    if (memory === null) metrics.redisMemory.remove()
    else metrics.redisMemory.set(memory)
    const { blocked, unsentBytes } = writers.pressure()
    metrics.blockedViewers.set(blocked)
    metrics.unsentBytes.set(unsentBytes)
    metrics.spareSlots.reset()
    for (const [agent, spare] of backlog.spareSlots()) metrics.spareSlots.inc({ agent: metrics.agentLabel(agent) }, spare)
    sampleQueues()
    await Promise.race([asked, sleep(patienceMs, undefined, { ref: false })])
  }

  function sampleQueues(): void {
    if (performance.now() - askedAt < freshMs) return
    askedAt = performance.now()
    asked = Promise.all([
      readQueues(db, leaseMs).then(set, () => set([])),
      countOpenWaits(db).then(setWaits, () => setWaits([])),
      readHeldFeed(db).then(
        ({ seconds }) => metrics.feedHeld.set(seconds),
        () => metrics.feedHeld.remove(),
      ),
      listVersions(db, everyTenant, leaseMs).then(setVersions, () => setVersions([])),
    ]).then(() => {})
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

  function setWaits(open: Awaited<ReturnType<typeof countOpenWaits>>): void {
    for (const gauge of [metrics.openWaits, metrics.oldestWait]) gauge.reset()
    const oldest = new Map<string, { agent: string; kind: string; ms: number }>()
    for (const { agent: name, kind, count, oldestMs } of open) {
      const agent = metrics.agentLabel(name)
      const key = `${agent} ${kind}`
      metrics.openWaits.inc({ agent, kind }, count)
      oldest.set(key, { agent, kind, ms: Math.max(oldestMs, oldest.get(key)?.ms ?? 0) })
    }
    for (const { agent, kind, ms } of oldest.values()) metrics.oldestWait.set({ agent, kind }, ms / 1_000)
  }

  function setVersions(versions: Awaited<ReturnType<typeof listVersions>>): void {
    for (const gauge of [metrics.versionWorkers, metrics.versionTurns]) gauge.reset()
    for (const { version: name, workers, queued, running, waiting } of versions) {
      const version = metrics.versionLabel(name)
      metrics.versionWorkers.inc({ version }, workers)
      metrics.versionTurns.inc({ version }, queued + running + waiting)
    }
  }
}
