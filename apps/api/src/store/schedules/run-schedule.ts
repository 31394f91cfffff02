/**
 * One time of a schedule becomes a task, or the reason why it did not. The run, the task and the schedule's next time are committed together, and the time
 * is the key of the run, so each time runs once, whichever process gets to it, and also when it comes again because the clock was set back.
 */
import { createTaskBody } from '@rivulet/contract/tasks'
import { hasEnded, RivuletError, type TaskId } from '@rivulet/protocol'
import { and, asc, desc, eq, isNotNull, lte, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { scheduleRuns, schedules, tasks } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import type { CancelBegun } from '../tasks/cancel-task.ts'
import { lastTime, nextTime } from './cron-times.ts'
import type { ScheduleRow, ScheduleRunRow } from './schedules.ts'

export type ScheduleDeps = {
  maxQueuedTurns: number
  /** Rejects a turn beyond the quota of its tenant. */
  admit(tx: Transaction, tenant: string): Promise<void>
  /** Begins to cancel a task, in the transaction that creates what follows it. */
  interrupt(tx: Transaction, tenant: string, task: TaskId): Promise<CancelBegun>
}

/** A run that was created, and the cancel of the one before it that has to be completed after the commit. */
export type CreatedRun = { run: ScheduleRunRow; interrupted?: CancelBegun }

/** A time that is later than this was missed: no server was there to run it. */
const missedMs = 60_000

/** Runs the first schedule that is due; null when none is, or other processes hold them. A time that ran before only gets its next time. */
export async function runDueSchedule(db: Database, deps: ScheduleDeps): Promise<CreatedRun | 'ran before' | null> {
  return db.transaction(async tx => {
    const [due] = await tx
      .select({ schedule: schedules, now: sql<string>`date_trunc('milliseconds', now())` })
      .from(schedules)
      .where(and(eq(schedules.status, 'active'), lte(schedules.nextAt, sql`now()`)))
      .orderBy(asc(schedules.nextAt))
      .limit(1)
      .for('update', { skipLocked: true })
    if (!due?.schedule.nextAt) return null
    const { schedule } = due
    const now = new Date(due.now)
    const at = schedule.nextAt as Date
    const isMissed = now.getTime() - at.getTime() > missedMs
    const isSkipped = isMissed && schedule.request.missed === 'skip'
    const runAt = isMissed && !isSkipped ? lastTime(schedule.request, at, now) : at
    const hasRunBefore = await hasRun(tx, schedule, runAt)
    const run = () => (isSkipped ? noteRun(tx, schedule, at, { skipReason: 'missed' }) : createRun(tx, schedule, runAt, deps))
    const created = hasRunBefore ? null : await run()
    // Not after now: a minute that begins while this runs is the next time.
    await tx
      .update(schedules)
      .set({ nextAt: nextTime(schedule.request, isMissed ? now : at) })
      .where(eq(schedules.id, schedule.id))
    return created ?? 'ran before'
  })
}

/**
 * Creates the task of a run; null when this time has run before. The caller holds the schedule, so no other process runs it meanwhile. A schedule that is
 * rejected (its agent is unknown, its task has too many turns) keeps its next times.
 */
export async function createRun(tx: Transaction, schedule: ScheduleRow, at: Date, deps: ScheduleDeps): Promise<CreatedRun | null> {
  const { tenant, request } = schedule
  const { cron: _, timezone: __, overlap, missed: ___, onEnd, ...task } = request
  if (await hasRun(tx, schedule, at)) return null
  const before = overlap === 'queue' ? null : await unfinishedRun(tx, schedule)
  if (before && overlap === 'skip') return noteRun(tx, schedule, at, { skipReason: 'overlap' })
  try {
    return await tx.transaction(async inner => {
      const interrupted = before ? await deps.interrupt(inner, tenant, before) : undefined
      // The secret of `onEnd` is sealed, so its schema would reject it.
      const body = { ...createTaskBody.parse(task), onEnd }
      const accepted = await createTask(inner, tenant, body, deps.maxQueuedTurns)
      if (accepted.isQueued) await deps.admit(inner, tenant)
      const { run } = await noteRun(inner, schedule, at, { task: accepted.task.id, turn: accepted.turn?.number ?? null })
      return { run, ...(interrupted && { interrupted }) }
    })
  } catch (error) {
    if (!(error instanceof RivuletError)) throw error
    return noteRun(tx, schedule, at, { skipReason: 'rejected', error: { code: error.code, message: error.publicMessage } })
  }
}

type RunResult = Partial<Pick<ScheduleRunRow, 'task' | 'turn' | 'skipReason' | 'error'>>

async function noteRun(tx: Transaction, { id, tenant }: ScheduleRow, at: Date, result: RunResult): Promise<CreatedRun> {
  const [run] = await tx
    .insert(scheduleRuns)
    .values({ schedule: id, tenant, at, ...result })
    .returning()
  if (!run) throw new Error('The run was not inserted')
  return { run }
}

async function hasRun(tx: Transaction, { id }: ScheduleRow, at: Date): Promise<boolean> {
  const isRun = and(eq(scheduleRuns.schedule, id), eq(scheduleRuns.at, at))
  return (await tx.select({ at: scheduleRuns.at }).from(scheduleRuns).where(isRun)).length > 0
}

/** The task of the latest run that created one, if it has not ended. */
async function unfinishedRun(tx: Transaction, { id }: ScheduleRow): Promise<string | null> {
  const [latest] = await tx
    .select({ task: tasks.id, status: tasks.status })
    .from(scheduleRuns)
    .innerJoin(tasks, eq(tasks.id, scheduleRuns.task))
    .where(and(eq(scheduleRuns.schedule, id), isNotNull(scheduleRuns.task)))
    .orderBy(desc(scheduleRuns.at))
    .limit(1)
  return latest && !hasEnded(latest.status) ? latest.task : null
}
