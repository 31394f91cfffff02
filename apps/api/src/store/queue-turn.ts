/**
 * Adding turns to a task. Whoever adds a turn, ends one or claims one holds the task's row, so turns of a task never overlap and none is
 * forgotten between the end of one and the arrival of the next.
 */
import { type Content, hasEnded, type Json, RivuletError } from '@rivulet/protocol'
import { and, desc, eq, inArray, lt, type SQL, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Transaction } from './database.ts'
import type { TaskRow, TurnRow } from './rows.ts'
import { outbox, tasks, turns } from './schema.ts'
import { isOf, type Tenant, taskNotFound } from './tenant.ts'

const unfinished = ['queued', 'running', 'waiting'] as const

/** The task, held until the transaction ends. Another tenant's is none. */
export async function lockTask(tx: Transaction, tenant: Tenant, task: string): Promise<TaskRow> {
  const [row] = await tx
    .select()
    .from(tasks)
    .where(and(eq(tasks.id, task), isOf(tenant, tasks.tenant)))
    .for('update')
  if (!row) throw taskNotFound()
  return row
}

/** From here on, whoever holds an older epoch can no longer write to the task's log. */
export async function raiseEpoch(
  tx: Transaction,
  task: TaskRow,
  also: { status?: TaskRow['status']; updatedAt?: SQL } = {},
): Promise<TaskRow> {
  const [raised] = await tx
    .update(tasks)
    .set({ epoch: sql`${tasks.epoch} + 1`, ...also })
    .where(eq(tasks.id, task.id))
    .returning()
  if (!raised) throw new Error(`Task ${task.id} is held, and yet gone`)
  return raised
}

export async function queueTurn(
  tx: Transaction,
  task: TaskRow,
  { input, params, delayMs = 0, maxQueued }: { input?: Content; params?: Json; delayMs?: number; maxQueued: number },
): Promise<TurnRow> {
  const pending = await pendingTurns(tx, task.id)
  if (pending.filter(turn => turn.status === 'queued').length >= maxQueued) {
    throw new RivuletError('too_many_turns', `At most ${maxQueued} turns of a task may wait`)
  }
  const [last] = await tx.select({ number: turns.number }).from(turns).where(eq(turns.task, task.id)).orderBy(desc(turns.number)).limit(1)
  const now = new Date()
  const runAt = new Date(now.getTime() + delayMs)
  const [turn] = await tx
    .insert(turns)
    .values({
      id: uuidv7(),
      task: task.id,
      tenant: task.tenant,
      number: (last?.number ?? 0) + 1,
      status: 'queued',
      attempt: 0,
      input: input ?? null,
      params: params ?? null,
      queuedAt: now,
      runAt,
      deadline: new Date(runAt.getTime() + task.timeoutMs),
    })
    .returning()
  if (!turn) throw new Error('The turn was not inserted')
  if (pending.length === 0) await dispatch(tx, turn.id)
  if (hasEnded(task.status)) await setTaskStatus(tx, task.id, 'queued')
  return turn
}

/** Turns that have not ended, in order. */
export async function pendingTurns(tx: Transaction, task: string): Promise<TurnRow[]> {
  const rows = tx.select().from(turns)
  return rows.where(and(eq(turns.task, task), inArray(turns.status, unfinished))).orderBy(turns.number)
}

/** Sends a turn to the queue once this transaction is committed. */
export async function dispatch(tx: Transaction, turn: string): Promise<void> {
  await tx
    .update(turns)
    .set({ dispatch: sql`${turns.dispatch} + 1` })
    .where(eq(turns.id, turn))
  await tx.insert(outbox).values({ turn })
}

/** Whether every turn before this one has ended. */
export async function isNext(tx: Transaction, turn: TurnRow): Promise<boolean> {
  const earlier = and(eq(turns.task, turn.task), lt(turns.number, turn.number), inArray(turns.status, unfinished))
  const [found] = await tx.select({ number: turns.number }).from(turns).where(earlier).limit(1)
  return !found
}

export async function setTaskStatus(tx: Transaction, task: string, status: TaskRow['status']): Promise<void> {
  await tx.update(tasks).set({ status, updatedAt: sql`now()` }).where(eq(tasks.id, task))
}
