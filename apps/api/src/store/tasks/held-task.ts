/**
 * A task whose row is held. Every transaction that adds, claims or ends a turn holds it first, so turns of a task never overlap and none is
 * forgotten between the end of one and the arrival of the next.
 */
import type { TaskId, TurnId } from '@rivulet/protocol'
import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { QueryResult } from 'pg'
import type { Transaction } from '../connection/database.ts'
import { isOf, type Readable, taskNotFound } from '../connection/tenant.ts'
import { byKeySettings, type Statement } from '../connection/tenant-pool.ts'
import type { TaskRow } from '../rows.ts'
import { tasks } from '../schema.ts'

/** The task, held until the transaction ends. A task of another tenant, or of an agent that the caller may not use, is not found. */
export async function lockTask(tx: Transaction, caller: Readable, task: TaskId): Promise<TaskRow> {
  const [row] = await tx.select().from(tasks).where(isTask(caller, task)).for('update')
  if (!row) throw taskNotFound()
  return row
}

/** In a transaction of its whole tenant, which a change needs: the task that a caller names, if the caller may know of it. */
export function isTask({ tenant, agents }: Readable, task: TaskId): SQL | undefined {
  return and(eq(tasks.id, task), isOf(tenant, tasks.tenant), agents ? inArray(tasks.agent, [...agents]) : undefined)
}

/**
 * The first statement of a transaction that is sent at once, about turns of several tasks: it holds the tasks, so that the statements behind it read them
 * under the lock, and find each row by its key. It leaves out tasks that another transaction holds. The statements behind it fail if they wait for 200 ms for
 * a lock, or take longer than 1.5 s, because many tasks are held meanwhile. Its result has the turns whose tasks are held.
 *
 * @param which a condition about turns, in SQL, with the name of the statement
 */
export function holdFreeTasksOf(turnIds: readonly TurnId[], which = { name: 'hold_free_tasks', sql: 'true' }): Statement {
  const limits = `set_config('lock_timeout', '200ms', true), set_config('statement_timeout', '1500ms', true)`
  return { name: which.name, text: holdText({ which: which.sql, also: limits, how: 'skip locked' }), values: [turnIds] }
}

/** The same for one turn, whose task is waited for. */
export function holdTaskOf(turnId: TurnId): Statement {
  return { name: 'hold_task', text: holdText({}), values: [[turnId]] }
}

const holdText = ({ which = 'true', also = '', how = '' }) => `
select set_config('${heldSetting}', coalesce(string_agg(wanted.turn::text, ','), ''), true) as held, ${byKeySettings}${also && `, ${also}`}
from unnest($1::uuid[]) as wanted (turn)
cross join lateral (select task from turns where turns.id = wanted.turn and ${which} offset 0) as own
cross join lateral (select from tasks where tasks.id = own.task for update ${how}) as locked`

const heldSetting = 'rivulet.held'

/** The turns whose tasks are held, as an array, in the statements behind it. */
export const heldTurns = `string_to_array(current_setting('${heldSetting}'), ',')::uuid[]`

/** What was found for each turn. Where nothing was: null if its task was held, or asked for alone, and undefined if the statement left it out. */
export function resultsOf<R>(
  turnIds: readonly TurnId[],
  found: ReadonlyMap<unknown, R>,
  { locked, isAlone }: { locked: QueryResult; isAlone: boolean },
): (R | null | undefined)[] {
  const held = new Set(String(locked.rows[0].held).split(','))
  return turnIds.map(id => found.get(id) ?? (held.has(id) || isAlone ? null : undefined))
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
