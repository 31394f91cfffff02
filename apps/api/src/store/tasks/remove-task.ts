/** Removes ended tasks, with their turns and messages: one that a caller deletes, and those past their retention. */
import { outcomeStatusSchema, RivuletError, type TaskId } from '@rivulet/protocol'
import { and, asc, eq, gt, inArray, lt, ne, notExists, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { firstIdAfter, msAgo } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { tasks, turns } from '../schema.ts'
import { pendingTurns } from '../turns/turn-states.ts'
import { lockTask } from './held-task.ts'

export async function removeTask(db: Database | Transaction, tenant: Tenant, id: string): Promise<void> {
  await db.transaction(async tx => {
    await lockTask(tx, tenant, id)
    if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
    await tx.delete(tasks).where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  })
}

/** The same for a task with one turn of its own; those before it were imported or copied. */
export async function removeOnlyTurn(db: Database | Transaction, tenant: Tenant, id: TaskId, turnNumber: number): Promise<void> {
  await db.transaction(async tx => {
    await lockTask(tx, tenant, id)
    if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
    const others = and(eq(turns.task, id), ne(turns.number, turnNumber), gt(turns.dispatch, 0))
    const [other] = await tx.select({ number: turns.number }).from(turns).where(others).limit(1)
    if (other)
      throw new RivuletError('bad_request', 'This turn is a part of a conversation: its task has other turns; delete the task instead')
    await tx.delete(tasks).where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  })
}

export type OldTasks = {
  removed: string[]
  /** Where to go on; null when all have been looked at. */
  next: string | null
}

/**
 * Removes those of up to `limit` tasks whose last turn ended longer ago than `keptMs`, in the order of their ids, from `after` on.
 *
 * A transaction that adds work to a task holds its row and marks it as not ended; Postgres checks the row again once it is free. So a task
 * that has just been taken up again stays, as does one whose end is still to be announced. A task that never started is removed like an ended one.
 */
export async function removeOldTasks(
  db: Database,
  { keptMs, after, limit }: { keptMs: number; after: string | null; limit: number },
): Promise<OldTasks> {
  const hasNoTurn = notExists(db.select({ id: turns.id }).from(turns).where(eq(turns.task, tasks.id)))
  const isOld = and(or(taskHasEnded, hasNoTurn), lt(tasks.updatedAt, msAgo(keptMs)))
  // Ids grow with time: what was made since cannot have ended before.
  const wasMadeBefore = lt(tasks.id, firstIdAfter(msAgo(keptMs)))
  const page = await db
    .select({ id: tasks.id, isOld: sql<boolean>`${isOld}` })
    .from(tasks)
    .where(and(wasMadeBefore, after === null ? undefined : gt(tasks.id, after)))
    .orderBy(asc(tasks.id))
    .limit(limit)
  const candidates = page.flatMap(row => (row.isOld ? [row.id] : []))
  const removed = candidates.length > 0 ? await removeThose(db, and(inArray(tasks.id, candidates), isOld, nothingIsOwed(db))) : []
  return { removed, next: page.length < limit ? null : (page.at(-1)?.id ?? null) }
}

const taskHasEnded = inArray(tasks.status, [...outcomeStatusSchema.options])

function nothingIsOwed(db: Database): SQL {
  const isOpen = or(notInArray(turns.status, [...outcomeStatusSchema.options]), eq(turns.announced, false))
  return notExists(
    db
      .select({ id: turns.id })
      .from(turns)
      .where(and(eq(turns.task, tasks.id), isOpen)),
  )
}

async function removeThose(db: Database, which: SQL | undefined): Promise<string[]> {
  const rows = await db.delete(tasks).where(which).returning({ id: tasks.id })
  return rows.map(({ id }) => id)
}
