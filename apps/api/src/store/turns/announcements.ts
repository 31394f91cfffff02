/** Which ends stand in the log, and which are still owed to it. */
import { type Cursor, hasEnded, type TaskId, type TurnId } from '@rivulet/protocol'
import { and, asc, eq, exists, inArray, lt, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { everyone } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { tasks, turns, waits } from '../schema.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { endedList, pendingTurns, turnColumns, unfinishedList } from './turn-states.ts'

/**
 * Whether a turn has ended and its end is not in the log yet, in SQL about turns under this name. Of one task, `not in` the opposite states, as
 * `turn-states.ts` explains; of all tasks, by the words of the index that holds just these turns.
 */
export function isOwed(alias: string, scope: 'of one task' | 'of all tasks' = 'of one task'): string {
  const hasEnded = scope === 'of one task' ? `not in (${unfinishedList})` : `in (${endedList})`
  return `${alias}.status ${hasEnded} and not ${alias}.announced`
}

/** A turn's end, and where its log stood behind it. */
export type AnnouncedEnd = { turnId: TurnId; cursor: Cursor }

export async function markAnnounced(db: Database, ends: readonly AnnouncedEnd[]): Promise<void> {
  const [ids, cursors] = [ends.map(({ turnId }) => turnId), ends.map(({ cursor }) => cursor)]
  await db.execute(sql`
    update turns set announced = true, end_cursor = ends.cursor
    from unnest(${sql.param(ids)}::uuid[], ${sql.param(cursors)}::text[]) as ends (turn, cursor)
    where turns.id = ends.turn and not turns.announced
  `)
}

export async function owedTurns(db: Database, { olderThanMs, limit }: { olderThanMs: number; limit: number }): Promise<TurnRow[]> {
  const isOld = lt(turns.finishedAt, msAgo(olderThanMs))
  return db
    .select(turnColumns)
    .from(turns)
    .where(and(sql.raw(isOwed('turns', 'of all tasks')), isOld))
    .orderBy(asc(turns.finishedAt), asc(turns.number))
    .limit(limit)
}

/** Turns of which the log may lack a wait, its answer, or that the turn parked. */
export async function turnsWithUntoldWaits(db: Database, limit: number): Promise<TurnRow[]> {
  const untold = db.selectDistinct({ turn: waits.turn }).from(waits).where(eq(waits.told, false)).limit(limit)
  return db.select(turnColumns).from(turns).where(inArray(turns.id, untold))
}

/** Only if the waits have not changed since they were read. The end of a turn tells its waits as well. */
export async function markWaitsTold(db: Database, { id, waitsVersion }: Pick<TurnRow, 'id' | 'waitsVersion'>): Promise<void> {
  const isSame = and(eq(turns.id, waits.turn), eq(turns.waitsVersion, waitsVersion))
  const same = exists(db.select({ id: turns.id }).from(turns).where(isSame))
  await db
    .update(waits)
    .set({ told: true })
    .where(and(eq(waits.turn, id), eq(waits.told, false), same))
}

/** Whether nothing is owed of its waits any more, because its end is in the log. */
export function isToldByItsEnd({ status, announced }: TurnRow): boolean {
  return hasEnded(status) && announced
}

export async function epochOfTask(db: Database, task: TaskId): Promise<number | null> {
  const [row] = await db.select({ epoch: tasks.epoch }).from(tasks).where(eq(tasks.id, task))
  return row?.epoch ?? null
}

/**
 * Turns of a task whose end is not in the log, in order: those that wait, the one that runs, and those whose end is owed. Of the last two the log
 * may not even know that they were queued yet.
 */
export async function unannouncedTurns(db: Database | Transaction, task: TaskId): Promise<TurnRow[]> {
  return db
    .select(turnColumns)
    .from(turns)
    .where(and(eq(turns.task, task), eq(turns.announced, false)))
    .orderBy(asc(turns.number))
}

/**
 * A new epoch for a task of which no turn is running or being ended. Null when one is: then its worker writes, or the process that ends it. That process may
 * have folded the log that is gone; what it commits would be missing in a log that was opened before the commit.
 */
export async function raiseIdleTask(db: Database, task: TaskId): Promise<number | null> {
  return db.transaction(async tx => {
    await lockTask(tx, everyone, task)
    const pending = await pendingTurns(tx, task)
    if (pending.some(turn => turn.status === 'running' || turn.canceling)) return null
    return (await raiseEpoch(tx, task)).epoch
  })
}

/**
 * Does something while the task's rows stay as they were under an epoch; null when they have changed since. A log is opened this way: if the rows
 * changed before their log was opened, viewers could have been sent rows with a cursor behind that log. What the work reads it reads by `tx`, because many that
 * each hold a connection and ask for a second one would wait for each other.
 */
export async function whileUnchanged<T>(
  db: Database,
  { task, epoch }: { task: TaskId; epoch: number },
  work: (tx: Transaction, unannounced: TurnRow[]) => Promise<T>,
): Promise<T | null> {
  return db.transaction(async tx => {
    const held = await lockTask(tx, everyone, task)
    return held.epoch === epoch ? work(tx, await unannouncedTurns(tx, task)) : null
  })
}
