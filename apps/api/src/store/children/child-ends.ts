/**
 * What the end of a child does for its parent. In the transaction that ends the child, the parent's wait is answered, and nothing else of the parent is
 * touched, because a cancel holds a parent before its children: the other order would be a deadlock. The parent goes on in a second transaction, at once, or
 * by the reconciler after a crash.
 */
import type { Failure, TaskId, TurnId } from '@rivulet/protocol'
import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { readNow } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { children, tasks, turns, waits } from '../schema.ts'
import { unfinished } from '../turns/turn-states.ts'
import { syncWaits } from '../waits/close-waits.ts'

type EndedChild = Pick<TurnRow, 'task' | 'number'> & { parent: TaskId | null }

/**
 * Only its first turn counts: a child that gets more input is a conversation of its own. A child that ends with its parent closes no wait, because the end of
 * the parent cancels the wait in the same transaction: after this, because the end of another child holds that child first, and then closes its wait.
 */
export async function noteChildEnd(
  tx: Transaction,
  { task, number, parent }: EndedChild,
  { status, error, withParent }: { status: 'completed' | 'failed' | 'canceled'; error?: Failure; withParent?: true },
): Promise<void> {
  if (number !== 1 || parent === null) return
  const [child] = await tx
    .update(children)
    .set({ status, owed: true })
    .where(and(eq(children.child, task), sql`${children.status} is null`))
    .returning({ child: children.child })
  if (!child || withParent) return
  const content = { status, ...(error && { error }) }
  await tx
    .update(waits)
    .set({ status: 'answered', told: false, answer: { action: 'accept', content, at: await readNow(tx) } })
    .where(and(eq(waits.child, task), eq(waits.status, 'open')))
}

/** Lets a turn go on whose wait was answered by the end of a child. Null if nothing has changed since the last time. */
export async function wakeParent(db: Database, { turnId, task }: { turnId: TurnId; task: TaskId }): Promise<TurnRow | null> {
  return db.transaction(async tx => {
    const [found] = await tx.select({ id: tasks.id }).from(tasks).where(eq(tasks.id, task)).for('update')
    const [turn] = found ? await tx.select().from(turns).where(eq(turns.id, turnId)) : []
    return turn ? syncWaits(tx, turn) : null
  })
}

export type ParentTurn = { turnId: TurnId; task: TaskId }

export async function parentTurnOf(db: Database, child: TaskId): Promise<ParentTurn | null> {
  const [row] = await db.select({ turnId: children.turn, task: children.parent }).from(children).where(eq(children.child, child))
  return row ?? null
}

/** The child of this name, for the worker of its parent. */
export async function findChild(db: Database, turnId: TurnId, name: string): Promise<TaskId | null> {
  const [row] = await db
    .select({ child: children.child })
    .from(children)
    .where(and(eq(children.turn, turnId), eq(children.name, name)))
  return row?.child ?? null
}

export type ChildRow = typeof children.$inferSelect

/** Children of a task of which the log may lack the start or the end. */
export async function owedChildren(db: Database, parent: TaskId): Promise<ChildRow[]> {
  return db
    .select()
    .from(children)
    .where(and(eq(children.parent, parent), eq(children.owed, true)))
    .orderBy(children.child)
}

/** Only if the child has not ended since it was read. */
export async function markChildTold(db: Database, { child, status }: ChildRow): Promise<void> {
  const isSame = sql`${children.status} is not distinct from ${status}`
  await db
    .update(children)
    .set({ owed: false })
    .where(and(eq(children.child, child), isSame))
}

export async function parentsWithOwedChildren(db: Database, limit: number): Promise<TaskId[]> {
  const rows = await db.selectDistinct({ task: children.parent }).from(children).where(eq(children.owed, true)).limit(limit)
  return rows.map(({ task }) => task)
}

/** The children of a task that have not ended; no forks. */
export async function openChildrenOf(db: Database, tenant: Tenant, task: TaskId): Promise<TaskId[]> {
  const rows = await db
    .select({ id: tasks.id })
    .from(tasks)
    .innerJoin(children, eq(children.child, tasks.id))
    .where(and(eq(tasks.parent, task), isOf(tenant, tasks.tenant), inArray(tasks.status, unfinished)))
    .orderBy(tasks.id)
  return rows.map(({ id }) => id)
}
