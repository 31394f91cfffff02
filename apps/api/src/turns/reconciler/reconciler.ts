/**
 * Repairs what a crash, an outage or a lost message left unfinished, by comparing Postgres with Redis and the workers: unsent intents, lost
 * jobs, expired leases, passed deadlines, expired waits, unfinished cancels and announcements. It also removes expired data. One process at a time
 * runs it.
 *
 * It looks for expired leases every half second. It treats a lease as expired only after heartbeats could have been accepted for one whole lease, so an
 * outage of Postgres or of the API makes no turn run again. Neither does a jump of Postgres' clock, which decides when a lease ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TurnQueue } from '@rivulet/broker'
import type { TaskId } from '@rivulet/protocol'
import type { Pool } from 'pg'
import { parentsWithOwedChildren } from '../../store/children/child-ends.ts'
import type { Database } from '../../store/connection/database.ts'
import { readNowMs } from '../../store/connection/moments.ts'
import type { TurnRow } from '../../store/rows.ts'
import { tasksWithOwedState } from '../../store/states/task-state.ts'
import { owedTurns, turnsWithUntoldWaits } from '../../store/turns/announcements.ts'
import { type ExpiredTurn, expiredTurns, hasExpiredTurns, isExpired, releaseForgotten } from '../../store/turns/leases.ts'
import { cancelingTurns, overdueTurns } from '../../store/turns/overdue.ts'
import { turnsWithDueWaits } from '../../store/waits/close-waits.ts'
import { aboutTurn } from '../about-turn.ts'
import type { ChildTasks } from '../child-tasks.ts'
import type { TurnEnding } from '../ending/turn-ending.ts'
import type { Relay } from '../relay.ts'
import type { TurnAnnouncing } from '../turn-announcing.ts'
import type { TurnDeaths } from '../turn-deaths.ts'
import type { TurnWaiting } from '../turn-waiting.ts'
import { createHousekeeping, type HousekeepingDeps } from './housekeeping.ts'
import { createLostJobs } from './lost-jobs.ts'
import { PostgresClock } from './postgres-clock.ts'
import { createForsaken, createRepairs } from './repairs.ts'

const advisoryLock = 7_233_485_002
/** How often the reconciler looks for expired leases between two rounds, because viewers wait for a turn without a worker. */
const leaseLookMs = 500
/** Leases that are mended side by side: a killed worker leaves dozens at once. */
const leasesAtOnce = 5
const batchSize = 500
const overdue = { code: 'deadline_exceeded', message: 'The turn exceeded its deadline' }

type ReconcilerDeps = HousekeepingDeps & {
  pool: Pool
  /** The pool of heartbeats. While it cannot be queried for expired leases, no heartbeat is accepted either. */
  leases: Database
  queue: TurnQueue
  relay: Relay
  announcing: TurnAnnouncing
  ending: TurnEnding
  deaths: TurnDeaths
  waiting: TurnWaiting
  childTasks: ChildTasks
  leaseMs: number
  reconcileMs: number
}

export type Reconciler = { stop(): Promise<void> }

export function startReconciler(deps: ReconcilerDeps): Reconciler {
  const { pool, db, leases, relay, announcing, ending, deaths, waiting, childTasks, logger, leaseMs, reconcileMs } = deps
  const stopping = new AbortController()
  const repairs = createRepairs(deps)
  const { mendEach, guard, repaired } = repairs
  const lostJobs = createLostJobs(deps, repairs)
  const housekeeping = createHousekeeping(deps, stopping.signal)
  const forsakenCancels = createForsaken<TurnRow>(({ id }) => id)
  const forsakenWaits = createForsaken<TurnRow>(({ id, waitsVersion }) => `${id} ${waitsVersion}`)
  const forsakenParents = createForsaken<TaskId>(task => task)
  const forsakenStates = createForsaken<{ task: TaskId; version: number }>(({ task, version }) => `${task} ${version}`)
  /** Since when this process has run, and has seen Postgres, without a break: in monotonic time. */
  let acceptingSince = performance.now()
  let lastPulse = performance.now()
  const clock = new PostgresClock(() => readNowMs(leases), leaseMs / 20)
  const pulse = setInterval(notePulse, leaseMs / 10)
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
        await noteClock()
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

  /** Leases may have ended by the clock alone: live workers renew them first. */
  async function noteClock(): Promise<void> {
    if (!(await clock.hasJumped())) return
    acceptingSince = performance.now()
    logger.warn('the clock of Postgres was set; leases that ended by that are renewed first')
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
    await mendEach('cancel', forsakenCancels(await cancelingTurns(db, batchSize)), ending.completeCancel)
    await mendEach('announcement', await owedTurns(db, { olderThanMs: reconcileMs, limit: batchSize }), announcing.announceOwed)
    await guard('wait', expireDue)
    await mendEach('announcement', forsakenWaits(await turnsWithUntoldWaits(db, batchSize)), tellWaits)
    await guard('announcement', tellForsakenChildren)
    await guard('announcement', tellForsakenStates)
    await guard('job', lostJobs.find)
    await guard('file', housekeeping.sweepFiles)
    await guard('retention', housekeeping.removeOld)
    await housekeeping.forgetRows()
  }

  async function mendLeases(): Promise<void> {
    notePulse()
    const expired = await expiredTurns(db, { leaseMs, limit: batchSize })
    await noteClock()
    if (performance.now() - acceptingSince < leaseMs) return
    for (let at = 0; at < expired.length; at += leasesAtOnce) {
      const together = expired.slice(at, at + leasesAtOnce)
      await Promise.all(together.map(turn => mendEach('lease', [turn], reclaim)))
    }
  }

  /** A live worker that does not renew a lease never received the claim's response. That is not a death. */
  async function reclaim({ isForgotten, ...turn }: ExpiredTurn): Promise<boolean> {
    return isForgotten ? releaseForgotten(db, turn.id) : deaths.count(turn, 'silent', isExpired)
  }

  function endOverdue(turn: TurnRow): Promise<boolean> {
    return ending.end(turn, { status: 'failed', stopReason: 'error', error: overdue })
  }

  /** The end of a child may have answered one of them. */
  async function tellWaits(turn: TurnRow): Promise<boolean> {
    return (await childTasks.wake({ turnId: turn.id, task: turn.task })) || announcing.announceWaits(turn)
  }

  async function tellForsakenChildren(): Promise<void> {
    for (const task of forsakenParents(await parentsWithOwedChildren(db, batchSize)))
      if (await announcing.announceChildren(task)) repaired('announcement', { task })
  }

  /** Changes of the state between two turns. */
  async function tellForsakenStates(): Promise<void> {
    for (const { task } of forsakenStates(await tasksWithOwedState(db, batchSize)))
      if (await announcing.announceState(task)) repaired('announcement', { task })
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
}
