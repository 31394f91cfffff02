/** Removes ended tasks, with their turns and messages: one that a caller deletes, and those past their retention. */
import { outcomeStatusSchema, RivuletError, type TaskId } from '@rivulet/protocol'
import { and, asc, eq, gt, inArray, lt, max, ne, notExists, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { firstIdAfter, msAgo } from '../connection/moments.ts'
import { isOf, type Readable } from '../connection/tenant.ts'
import { messages, tasks, turns } from '../schema.ts'
import { pendingTurns } from '../turns/turn-states.ts'
import { lockTask } from './held-task.ts'

export async function removeTask(db: Database | Transaction, caller: Readable, id: string): Promise<void> {
  await db.transaction(async tx => {
    await lockTask(tx, caller, id)
    if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
    await tx.delete(tasks).where(and(eq(tasks.id, id), isOf(caller.tenant, tasks.tenant)))
  })
}

/** The same for a task with one turn of its own; those before it were imported or copied. */
export async function removeOnlyTurn(db: Database | Transaction, caller: Readable, id: TaskId, turnNumber: number): Promise<void> {
  await db.transaction(async tx => {
    await lockTask(tx, caller, id)
    if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
    const others = and(eq(turns.task, id), ne(turns.number, turnNumber), gt(turns.dispatch, 0))
    const [other] = await tx.select({ number: turns.number }).from(turns).where(others).limit(1)
    if (other)
      throw new RivuletError('bad_request', 'This turn is a part of a conversation: its task has other turns; delete the task instead')
    await tx.delete(tasks).where(and(eq(tasks.id, id), isOf(caller.tenant, tasks.tenant)))
  })
}

/** Of so many messages together, because a statement may take 5 s, and deletes 20,000 messages in about half a second. */
const maxMessages = 20_000

type OldTasks = {
  removed: string[]
  /** Where to go on; null when all have been looked at. */
  next: string | null
}

/**
 * Removes those of up to `limit` tasks whose last turn ended longer ago than `keptMs`, in the order of their ids, from `after` on. Fewer where they have
 * many messages; the messages of a large task are removed piece by piece in one transaction.
 *
 * A transaction that adds work to a task holds its row and marks it as not ended; Postgres checks the row again once it is free. So a task
 * that has just been taken up again stays, as does one whose end is still to be announced. A task that never started is removed like an ended one.
 */
export async function removeOldTasks(
  db: Database,
  { keptMs, after, limit, messageLimit = maxMessages }: { keptMs: number; after: string | null; limit: number; messageLimit?: number },
): Promise<OldTasks> {
  const hasNoTurn = notExists(db.select({ id: turns.id }).from(turns).where(eq(turns.task, tasks.id)))
  const isOld = and(or(taskHasEnded, hasNoTurn), lt(tasks.updatedAt, msAgo(keptMs)))
  // Ids grow with time: what was made since cannot have ended before.
  const wasMadeBefore = lt(tasks.id, firstIdAfter(msAgo(keptMs)))
  const lastIndex = db
    .select({ index: max(messages.index) })
    .from(messages)
    .where(eq(messages.task, tasks.id))
  const looked = await db
    .select({
      id: tasks.id,
      isOld: sql<boolean>`${isOld}`,
      size: sql<number>`case when ${isOld} then coalesce((${lastIndex}), 0) else 0 end`,
    })
    .from(tasks)
    .where(and(wasMadeBefore, after === null ? undefined : gt(tasks.id, after)))
    .orderBy(asc(tasks.id))
    .limit(limit)
  const page = upToSize(looked, messageLimit)
  const candidates = page.flatMap(row => (row.isOld ? [row.id] : []))
  const which = and(inArray(tasks.id, candidates), isOld, nothingIsOwed(db))
  const isLarge = page.length === 1 && (page[0]?.size ?? 0) > messageLimit
  const removed = candidates.length === 0 ? [] : isLarge ? await removeInPieces(db, which, messageLimit) : await removeThose(db, which)
  return { removed, next: looked.length < limit && page.length === looked.length ? null : (page.at(-1)?.id ?? null) }
}

/** The first ones, of which at least one, that are not larger together. */
function upToSize<Row extends { size: number }>(rows: readonly Row[], size: number): Row[] {
  let sum = 0
  const tooMany = rows.findIndex((row, place) => {
    sum += row.size
    return place > 0 && sum > size
  })
  return rows.slice(0, tooMany === -1 ? rows.length : tooMany)
}

async function removeInPieces(db: Database, which: SQL | undefined, size: number): Promise<TaskId[]> {
  return db.transaction(async tx => {
    const [task] = await tx.select({ id: tasks.id }).from(tasks).where(which).for('update')
    if (!task) return []
    for (let count = size; count === size; ) {
      const piece = tx.select({ index: messages.index }).from(messages).where(eq(messages.task, task.id)).limit(size)
      const { rowCount } = await tx.delete(messages).where(and(eq(messages.task, task.id), inArray(messages.index, piece)))
      count = rowCount ?? 0
    }
    return removeThose(tx, eq(tasks.id, task.id))
  })
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

async function removeThose(db: Database | Transaction, which: SQL | undefined): Promise<TaskId[]> {
  const rows = await db.delete(tasks).where(which).returning({ id: tasks.id })
  return rows.map(({ id }) => id)
}
