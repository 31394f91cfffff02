/**
 * How waits close: by an answer, a signal, their time or the end of their turn. Each closes once, because its task is held, and only an open one
 * changes. A turn that parked is queued again in the transaction that closes its last one.
 */
import { isAnsweredByRequest, type TurnId, type WaitAnswer, type WaitId, type WaitStatus, waitKinds } from '@rivulet/protocol'
import { and, asc, eq, inArray, lte, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { everyone } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { turns, waits } from '../schema.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { hasOpenWait, noteChange, waitsOf } from './wait-rows.ts'

export type Closing = { status: Exclude<WaitStatus, 'open'>; answer?: WaitAnswer }

/** Closes those open waits of a turn that a condition names. Null when no wait is open. The caller lets the turn go on, or ends it. */
export async function closeWaits(tx: Transaction, turnId: TurnId, { status, answer }: Closing, which?: SQL): Promise<TurnRow | null> {
  const closed = await tx
    .update(waits)
    .set({ status, ...(answer && { answer }) })
    .where(and(eq(waits.turn, turnId), eq(waits.status, 'open'), which))
    .returning({ id: waits.id })
  return closed.length > 0 ? noteChange(tx, turnId) : null
}

/** Closes waits, and lets the turn go on when none of it is open any more. */
export async function closeAndResume(tx: Transaction, turnId: TurnId, closing: Closing, which?: SQL): Promise<TurnRow | null> {
  const turn = await closeWaits(tx, turnId, closing, which)
  return turn && resume(tx, turn)
}

/**
 * Brings a turn's copy of its waits up to date, and lets the turn go on: the end of a child closes a wait without a hold of the parent's task. The task is
 * held. Null if nothing has changed.
 */
export async function syncWaits(tx: Transaction, { id, waits: known }: Pick<TurnRow, 'id' | 'waits'>): Promise<TurnRow | null> {
  if (!known) return null
  const rows = await waitsOf(tx, id)
  const isStale = rows.some(row => known.find(wait => wait.id === row.id)?.status !== row.status)
  return isStale ? resume(tx, await noteChange(tx, id)) : null
}

/** A parked turn is queued again, with the time that it waited added to its deadline. One that its worker holds goes on there. */
async function resume(tx: Transaction, turn: TurnRow): Promise<TurnRow> {
  if (hasOpenWait(turn)) {
    await raiseEpoch(tx, turn.task)
    return turn
  }
  if (turn.status !== 'waiting') {
    await raiseEpoch(tx, turn.task, turn.status === 'running' ? 'running' : undefined)
    return turn
  }
  const waited = sql`${turns.deadline} + (now() - coalesce(${turns.parkedAt}, now()))`
  const [queued] = await tx
    .update(turns)
    .set({ status: 'queued', resumed: 'queued', runAt: sql`now()`, isDelayed: false, deadline: waited, parkedAt: null })
    .where(and(eq(turns.id, turn.id), eq(turns.status, 'waiting')))
    .returning()
  await dispatch(tx, turn.id)
  await raiseEpoch(tx, turn.task, 'queued')
  return queued ?? turn
}

export function isWait(id: WaitId): SQL {
  return eq(waits.id, id)
}

/** A wait that a request may answer. */
export const isForPeople = inArray(waits.kind, waitKinds.filter(isAnsweredByRequest))

const isDue = lte(waits.expiresAt, sql`now()`)

/** Turns that have an open wait whose time is up, oldest first. */
export async function turnsWithDueWaits(db: Database, limit: number): Promise<Pick<TurnRow, 'id' | 'task'>[]> {
  const rows = await db
    .select({ id: waits.turn, task: waits.task })
    .from(waits)
    .where(and(eq(waits.status, 'open'), isDue))
    .orderBy(asc(waits.expiresAt))
    .limit(limit)
  return [...new Map(rows.map(row => [row.id, row])).values()]
}

/** Null when another process closed them first. */
export async function expireWaits(db: Database, { id, task }: Pick<TurnRow, 'id' | 'task'>): Promise<TurnRow | null> {
  return db.transaction(async tx => {
    await lockTask(tx, everyone, task)
    return closeAndResume(tx, id, { status: 'expired' }, isDue)
  })
}
