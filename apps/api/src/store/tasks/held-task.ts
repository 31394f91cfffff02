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

/**
 * The same for a transaction that is sent at once, about turns of several tasks. A separate statement, so that the next one reads while the locks are held.
 * A single task is waited for. Of several, those that another transaction holds are left out: two transactions that wait for each other's tasks would never
 * end. `heldTurns` are the turns whose tasks are held.
 *
 * The statements of such a transaction find each row by its key. Postgres plans a named statement once for a connection, on a new database when its
 * tables are empty, and would read the whole table ever after.
 */
export function holdTasksOf(turnIds: readonly TurnId[]): Statement {
  const isSingle = turnIds.length === 1
  return { name: isSingle ? 'hold_task' : 'hold_free_tasks', text: isSingle ? holdText('') : holdText('skip locked'), values: [turnIds] }
}

const holdText = (how: string) => `
select set_config('rivulet.held', coalesce(string_agg(wanted.turn::text, ','), ''), true),
  set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
  set_config('jit', 'off', true)
from unnest($1::uuid[]) as wanted (turn)
cross join lateral (select from tasks where tasks.id = (select task from turns where turns.id = wanted.turn) for update ${how}) as held`

/** In SQL behind `holdTasksOf`, as an array. */
export const heldTurns = `string_to_array(current_setting('rivulet.held'), ',')::uuid[]`

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
