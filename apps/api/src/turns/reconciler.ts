/**
 * Repairs what a crash, an outage or a lost message left unfinished, by comparing Postgres with Redis and the workers: unsent intents, lost
 * jobs, expired leases, passed deadlines, unfinished cancels and announcements. It also removes expired data. One process at a time runs it.
 *
 * It looks for expired leases every half second, so a turn whose worker died continues within a second of the end of its lease. It treats a
 * lease as expired only after heartbeats could have been accepted for one whole lease, so an outage of Postgres or of the API makes no turn run
 * again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { DispatchName, LogAnnouncer, TurnQueue } from '@rivulet/broker'
import type { Failure } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import type { Pool } from 'pg'
import type { Files } from '../files/files.ts'
import { forgetOldKeys } from '../store/access/idempotency.ts'
import { forgetRevocations } from '../store/access/token-revocations.ts'
import { parentsWithOwedChildren } from '../store/children/child-ends.ts'
import { type Database, isDatabaseAway, sqlStateOf } from '../store/connection/database.ts'
import { forgetDeliveries } from '../store/feed/deliveries.ts'
import { forgetFeed } from '../store/feed/read-feed.ts'
import { forgetWorkers } from '../store/reads/agents.ts'
import type { TurnRow } from '../store/rows.ts'
import { tasksWithOwedState } from '../store/states/task-state.ts'
import type { ForcedOutcome } from '../store/tasks/cancel-task.ts'
import { dispatchedTurns, redispatch, type SentTurn } from '../store/tasks/outbox.ts'
import { removeOldTasks } from '../store/tasks/remove-task.ts'
import { forgetSteps } from '../store/tasks/steps.ts'
import { owedTurns, turnsWithUntoldWaits } from '../store/turns/announcements.ts'
import { type ExpiredTurn, expiredTurns, hasExpiredTurns, isExpired, releaseForgotten } from '../store/turns/leases.ts'
import { cancelingTurns, overdueTurns } from '../store/turns/overdue.ts'
import { forgetUsage } from '../store/usage/read-usage.ts'
import { turnsWithDueWaits } from '../store/waits/close-waits.ts'
import { forgetSignals } from '../store/waits/signals.ts'
import type { Metrics, repairKinds } from '../telemetry/metrics.ts'
import { type AboutTurn, aboutTurn } from './about-turn.ts'
import type { ChildTasks } from './child-tasks.ts'
import type { Relay } from './relay.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'
import type { TurnDeaths } from './turn-deaths.ts'
import type { TurnEnding } from './turn-ending.ts'
import type { TurnWaiting } from './turn-waiting.ts'

const advisoryLock = 7_233_485_002
/** How often the reconciler looks for expired leases between two rounds, because viewers wait for a turn without a worker. */
const leaseLookMs = 500
/** Leases that are mended side by side: a killed worker leaves dozens at once. */
const leasesAtOnce = 5
const batchSize = 500
const housekeepingMs = 60_000
/** So many old tasks are removed at once, and so often in one round: what ended is in no hurry, what has to be mended is. */
const feedBatch = 5_000
const removal = { batchSize: 100, batches: 10 }

export type ReconcilerDeps = {
  pool: Pool
  db: Database
  /** The pool of heartbeats. While it cannot be queried for expired leases, no heartbeat is accepted either. */
  leases: Database
  queue: TurnQueue
  relay: Relay
  announcer: LogAnnouncer
  announcing: TurnAnnouncing
  ending: TurnEnding
  deaths: TurnDeaths
  waiting: TurnWaiting
  childTasks: ChildTasks
  files: Files
  logger: FastifyBaseLogger
  metrics: Metrics
  leaseMs: number
  reconcileMs: number
  /** How long an ended task is kept; null: for ever. */
  taskRetentionMs: number | null
  /** How long the rows of usage are kept. */
  usageRetentionMs: number
}

type RepairKind = (typeof repairKinds)[number]
type Chore = RepairKind | 'retention' | 'wait'

export type Reconciler = { stop(): Promise<void> }

export function startReconciler(deps: ReconcilerDeps): Reconciler {
  const { pool, db, leases, queue, relay, announcer, announcing, ending, deaths, waiting, childTasks, files, logger, metrics } = deps
  const { leaseMs, reconcileMs, taskRetentionMs, usageRetentionMs } = deps
  const stopping = new AbortController()
  /** Since when this process has run, and has seen Postgres, without a break: in monotonic time. */
  let acceptingSince = performance.now()
  let lastPulse = performance.now()
  const pulse = setInterval(notePulse, leaseMs / 10)
  let lastHousekeeping = Number.NEGATIVE_INFINITY
  let cancelingBefore = new Set<string>()
  let untoldBefore = new Map<string, number>()
  let owedStatesBefore = new Map<string, number>()
  let owedChildrenBefore = new Set<string>()
  /** The task that was looked at last, of those that may be old. */
  let removedUpTo: string | null = null
  const running = loop()

  return {
    async stop() {
      stopping.abort()
      clearInterval(pulse)
      await running
    },
  }

  async function loop(): Promise<void> {
    let nextRound = performance.now()
    while (!stopping.signal.aborted) {
      const isDue = performance.now() >= nextRound
      if (isDue) nextRound = performance.now() + reconcileMs * (0.8 + Math.random() * 0.4)
      try {
        if (isDue) await alone(repair)
        else if (await hasExpiredTurns(leases)) await alone(mendLeases)
      } catch (error) {
        acceptingSince = performance.now()
        logger[isDue ? 'warn' : 'debug']({ err: error }, 'reconciler round failed')
      }
      const waitMs = Math.max(0, Math.min(leaseLookMs, nextRound - performance.now()))
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  /** A process that was paused has accepted no heartbeats meanwhile. */
  function notePulse(): void {
    const now = performance.now()
    if (now - lastPulse > leaseMs / 2) acceptingSince = now
    lastPulse = now
  }

  /** Runs `work` if this process gets the advisory lock. */
  async function alone(work: () => Promise<void>): Promise<void> {
    const client = await pool.connect()
    try {
      const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [advisoryLock])
      if (rows[0]?.locked) {
        await work()
        await client.query('select pg_advisory_unlock($1)', [advisoryLock])
      }
    } catch (error) {
      // Closing the connection gives the lock back.
      client.release(true)
      throw error
    }
    client.release()
  }

  async function repair(): Promise<void> {
    await guard('outbox', sendForgotten)
    await mendLeases()
    await mendEach('deadline', await overdueTurns(db, batchSize), endOverdue)
    await mendEach('cancel', await forsakenCancels(), ending.completeCancel)
    await mendEach('announcement', await owedTurns(db, { olderThanMs: reconcileMs, limit: batchSize }), announcing.announceOwed)
    await guard('wait', expireDue)
    await mendEach('announcement', await forsakenWaits(), tellWaits)
    await guard('announcement', tellForsakenChildren)
    await guard('announcement', tellForsakenStates)
    await guard('job', findLostJobs)
    await guard('file', sweepFiles)
    if (taskRetentionMs !== null) await guard('retention', () => removeOld(taskRetentionMs))
    if (performance.now() - lastHousekeeping < housekeepingMs) return
    lastHousekeeping = performance.now()
    await forgetOldKeys(db, taskRetentionMs)
    await forgetSteps(db)
    await forgetSignals(db)
    await forgetRevocations(db)
    await forgetWorkers(db)
    while ((await forgetFeed(db, feedBatch)) && !stopping.signal.aborted);
    while ((await forgetUsage(db, { keptMs: usageRetentionMs, limit: feedBatch })) && !stopping.signal.aborted);
    while ((await forgetDeliveries(db, feedBatch)) && !stopping.signal.aborted);
  }

  async function mendLeases(): Promise<void> {
    notePulse()
    if (performance.now() - acceptingSince < leaseMs) return
    const expired = await expiredTurns(db, { leaseMs, limit: batchSize })
    for (let at = 0; at < expired.length; at += leasesAtOnce) {
      const together = expired.slice(at, at + leasesAtOnce)
      await Promise.all(together.map(turn => mendEach('lease', [turn], reclaim)))
    }
  }

  /** One turn that cannot be mended yet keeps no other from being mended. */
  async function mendEach<T extends TurnRow>(kind: RepairKind, turns: T[], mend: (turn: T) => Promise<boolean>): Promise<void> {
    for (const turn of turns) {
      const about = aboutTurn(turn)
      const work = async () => {
        if (await mend(turn)) repaired(kind, about)
      }
      await guard(kind, work, about)
    }
  }

  /** Without Postgres there is nothing to compare with: that ends the round. Anything else is tried again in the next one. */
  async function guard(kind: Chore, work: () => Promise<void>, about?: AboutTurn): Promise<void> {
    try {
      await work()
    } catch (error) {
      // 55P03 and 40: another transaction holds this task, or committed first.
      if (isDatabaseAway(error) && !/^(55P03|40)/.test(sqlStateOf(error) ?? '')) throw error
      logger.warn({ kind, ...about, err: error }, 'reconciler repair failed; retrying')
    }
  }

  /** A live worker that does not renew a lease never received the claim's response. That is not a death. */
  async function reclaim({ isForgotten, ...turn }: ExpiredTurn): Promise<boolean> {
    return isForgotten ? releaseForgotten(db, turn.id) : deaths.count(turn, 'silent', isExpired)
  }

  function endOverdue(turn: TurnRow): Promise<boolean> {
    return ending.end(turn, failed({ code: 'deadline_exceeded', message: 'The turn exceeded its deadline' }))
  }

  /** A cancel that is still there a round later has lost its caller. */
  async function forsakenCancels(): Promise<TurnRow[]> {
    const canceling = await cancelingTurns(db, batchSize)
    const forsaken = canceling.filter(({ id }) => cancelingBefore.has(id))
    cancelingBefore = new Set(canceling.map(({ id }) => id))
    return forsaken
  }

  /** What is still not in the log a round later has lost the process that was to write it. */
  async function forsakenWaits(): Promise<TurnRow[]> {
    const untold = await turnsWithUntoldWaits(db, batchSize)
    const forsaken = untold.filter(({ id, waitsVersion }) => untoldBefore.get(id) === waitsVersion)
    untoldBefore = new Map(untold.map(({ id, waitsVersion }) => [id, waitsVersion]))
    return forsaken
  }

  /** The end of a child may have answered one of them. */
  async function tellWaits(turn: TurnRow): Promise<boolean> {
    return (await childTasks.wake({ turnId: turn.id, task: turn.task })) || announcing.announceWaits(turn)
  }

  async function tellForsakenChildren(): Promise<void> {
    const owed = new Set(await parentsWithOwedChildren(db, batchSize))
    for (const task of owed)
      if (owedChildrenBefore.has(task) && (await announcing.announceChildren(task))) repaired('announcement', { task })
    owedChildrenBefore = owed
  }

  /** The same for changes of the state between two turns. */
  async function tellForsakenStates(): Promise<void> {
    const owed = await tasksWithOwedState(db, batchSize)
    const forsaken = owed.filter(({ task, version }) => owedStatesBefore.get(task) === version)
    owedStatesBefore = new Map(owed.map(({ task, version }) => [task, version]))
    for (const { task } of forsaken) if (await announcing.announceState(task)) repaired('announcement', { task })
  }

  async function sendForgotten(): Promise<void> {
    for (const turn of await relay.drain(reconcileMs)) repaired('outbox', aboutTurn(turn))
  }

  /** A batch at a time: what stays open behind it is found in the next round. */
  async function expireDue(): Promise<void> {
    for (const due of await turnsWithDueWaits(db, batchSize)) {
      await guard('wait', async () => {
        if (await waiting.expire(due)) logger.info({ task: due.task, turnId: due.id }, 'a wait expired')
      })
    }
  }

  async function findLostJobs(): Promise<void> {
    for (;;) {
      const due = await dispatchedTurns(db, { dueForMs: reconcileMs, limit: batchSize })
      const found = await queue.find(due)
      const lost = due.filter((_, position) => !found[position])
      await endDelays(due.filter((_, position) => found[position]))
      const turns = lost.map(({ turnId }) => turnId)
      if (lost.length > 0) await redispatch(db, turns)
      for (const turn of lost) repaired('job', aboutTurn(turn))
      // Turns whose jobs are there would be found again: only a page of nothing but losses promises more.
      if (lost.length < batchSize) return
    }
  }

  /** By Postgres these are due. A job that is delayed all the same goes by the clock of a worker that is behind. */
  async function endDelays(due: readonly (DispatchName & SentTurn)[]): Promise<void> {
    const wereDelayed = await queue.endDelay(due)
    for (const [i, turn] of due.entries()) if (wereDelayed[i]) repaired('job', aboutTurn(turn))
  }

  async function removeOld(keptMs: number): Promise<void> {
    for (let batch = 0; batch < removal.batches && !stopping.signal.aborted; batch += 1) {
      const { removed, next } = await removeOldTasks(db, { keptMs, after: removedUpTo, limit: removal.batchSize })
      removedUpTo = next
      // Their logs expire by themselves, too.
      await Promise.all(removed.map(task => announcer.remove(task).catch(() => {})))
      if (removed.length > 0) {
        await forgetOldKeys(db, keptMs)
        logger.info({ tasks: removed.length }, 'removed old tasks')
      }
      if (next === null) return
    }
  }

  /** Bytes of uploads that were cut, and of files that no task needs. */
  async function sweepFiles(): Promise<void> {
    const removed = await files.sweep()
    if (removed === 0) return
    metrics.repairs.inc({ kind: 'file' }, removed)
    logger.info({ files: removed }, 'removed the bytes of files that are gone or were never complete')
  }

  function repaired(kind: RepairKind, about: Pick<AboutTurn, 'task'>): void {
    metrics.repairs.inc({ kind })
    logger.info({ kind, ...about }, 'reconciler repaired')
    // The repaired turn may wait in the outbox now.
    if (kind !== 'outbox') relay.kick()
  }
}

function failed(error: Failure): ForcedOutcome {
  return { status: 'failed', stopReason: 'error', error }
}
