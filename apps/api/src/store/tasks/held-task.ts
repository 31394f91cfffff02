/**
 * A task whose row is held. Every transaction that adds, claims or ends a turn holds it first, so turns of a task never overlap and none is
 * forgotten between the end of one and the arrival of the next.
 */
import { and, eq, sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import { isOf, type Tenant, taskNotFound } from '../connection/tenant.ts'
import type { Statement } from '../connection/tenant-pool.ts'
import type { TaskRow } from '../rows.ts'
import { tasks } from '../schema.ts'

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

/** The same for a transaction that is sent at once. A separate statement, so that the next one reads while the lock is held. */
export function holdTaskOf(turn: string): Statement {
  return { name: 'hold_task', text: 'select from tasks where id = (select task from turns where id = $1) for update', values: [turn] }
}

/** From here on, a worker with an older epoch can no longer write to the task's log. */
export async function raiseEpoch(tx: Transaction, task: TaskRow): Promise<TaskRow> {
  const [raised] = await tx
    .update(tasks)
    .set({ epoch: sql`${tasks.epoch} + 1` })
    .where(eq(tasks.id, task.id))
    .returning()
  if (!raised) throw new Error(`Task ${task.id} is held, and yet gone`)
  return raised
}

export async function setTaskStatus(tx: Transaction, task: string, status: TaskRow['status']): Promise<void> {
  await tx.update(tasks).set({ status, updatedAt: sql`now()` }).where(eq(tasks.id, task))
}
