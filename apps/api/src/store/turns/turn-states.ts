/** The states of turns in SQL, and the turns of a task that have not ended. */
import { type Content, maxQueuedInputBytes, outcomeStatusSchema, type TaskId, taskStatusSchema } from '@rivulet/protocol'
import { and, eq, getTableColumns, notInArray, sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import type { TurnRow } from '../rows.ts'
import { turns } from '../schema.ts'

export const unfinished = taskStatusSchema.exclude(outcomeStatusSchema.options).options
/**
 * Lists in SQL. What is asked of a single turn or a single task is asked with `not in` the opposite: there are indexes that hold just the turns
 * in some state, of all tasks, and Postgres, as long as it does not know how many those are, would go through such an index for every task.
 */
export const unfinishedList = sqlList(unfinished)
export const endedList = sqlList(outcomeStatusSchema.options)
export const notQueuedList = sqlList(taskStatusSchema.exclude(['queued']).options)

/**
 * Whether nothing before a turn in its task waits or runs, in a query about turns. `offset 0`: so it stays a question about this turn's task,
 * whatever there is besides, and is not made a join of all turns.
 */
export const isNext = `not exists (
  select from turns earlier
  where earlier.task = turns.task and earlier.number < turns.number and earlier.status not in (${endedList}) offset 0
)`

/**
 * Whether a turn may start by now, in SQL about turns under this name. One without a delay may, also where Postgres' clock was set back.
 * As one comparison, which the index `turns_due` has.
 */
export function isDue(alias: string): string {
  return `${dueAt(alias)} <= now()`
}

/** From when on a turn may start; one without a delay always may. */
export function dueAt(alias: string): string {
  return `case when ${alias}.is_delayed then ${alias}.run_at else '-infinity' end`
}

/** Whether a turn stays with the version that began it, in SQL about turns. The settings of agents are JSON as text. */
export const hasPinnedVersion = `turns.version is not null and exists (
  select from agents where agents.name = (select queue_of(turns.tenant, agent) from tasks where tasks.id = turns.task) and agents.settings::json->>'pin' = 'true'
)`

/** All inputs of a turn, in SQL about turns under this name. */
export function inputArray(alias: string): string {
  return `coalesce(${alias}.inputs, case when ${alias}.input is null then '[]'::json else json_build_array(${alias}.input) end)`
}

export function inputCount(alias: string): string {
  return `json_array_length(${inputArray(alias)})`
}

const inputBytes = sql`octet_length(coalesce(${turns.inputs}, ${turns.input})::text)`
const isSmall = sql`${inputBytes} <= ${sql.raw(String(maxQueuedInputBytes))}`

/**
 * A turn as the server needs it to announce and to end it: without params, and with an input only if `turn.queued` has it. A task may have dozens of
 * waiting turns of megabytes each, and none of them is sent from here.
 */
export const turnColumns = {
  ...getTableColumns(turns),
  params: sql<null>`null`,
  input: sql<Content | null>`case when ${isSmall} then ${turns.input} end`,
  inputs: sql<Content[] | null>`case when ${isSmall} then ${turns.inputs} end`,
  hasLargeInput: sql<boolean>`coalesce(not ${isSmall}, false)`,
}

/** Turns that have not ended, in order, without their large values. */
export async function pendingTurns(tx: Transaction, task: TaskId): Promise<TurnRow[]> {
  const rows = tx.select(turnColumns).from(turns)
  return rows.where(and(eq(turns.task, task), notInArray(turns.status, outcomeStatusSchema.options))).orderBy(turns.number)
}

function sqlList(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ')
}
