/**
 * A task whose row is held. Every transaction that adds, claims or ends a turn holds it first, so turns of a task never overlap and none is
 * forgotten between the end of one and the arrival of the next.
 */
import type { TaskId, TurnId } from '@rivulet/protocol'
import { and, eq, sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import { isOf, type Tenant, taskNotFound } from '../connection/tenant.ts'
import type { Statement } from '../connection/tenant-pool.ts'
import type { TaskRow } from '../rows.ts'
import { tasks } from '../schema.ts'

/** The task, held until the transaction ends. Another tenant's task is not found. */
export async function lockTask(tx: Transaction, tenant: Tenant, task: TaskId): Promise<TaskRow> {
  const [row] = await tx
    .select()
    .from(tasks)
    .where(and(eq(tasks.id, task), isOf(tenant, tasks.tenant)))
    .for('update')
  if (!row) throw taskNotFound()
  return row
}

/** The same for a transaction that is sent at once. A separate statement, so that the next one reads while the lock is held. */
export function holdTaskOf(turnId: TurnId): Statement {
  return { name: 'hold_task', text: 'select from tasks where id = (select task from turns where id = $1) for update', values: [turnId] }
}

/** The epoch after a change of the task's rows, in SQL about `tasks`: the next even number. */
export const raisedEpoch = 'tasks.epoch + 2 - tasks.epoch % 2'

/**
 * Called with every change of what viewers see in the task's rows, because a cursor of the rows has their epoch and stands for one content. A worker
 * continues under the epoch of its claim; a claim, a reopening or a cancel raises the log to the new epoch, which fences that worker off.
 */
export async function raiseEpoch(tx: Transaction, task: TaskId, status?: TaskRow['status']): Promise<TaskRow> {
  const [raised] = await tx
    .update(tasks)
    .set({ epoch: sql.raw(raisedEpoch), ...(status && { status, updatedAt: sql`now()` }) })
    .where(eq(tasks.id, task))
    .returning()
  if (!raised) throw new Error(`Task ${task} is held, and yet gone`)
  return raised
}
