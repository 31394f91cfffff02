/**
 * Adding turns to a task. Whoever adds a turn, ends one or claims one holds the task's row, so turns of a task never overlap and none is
 * forgotten between the end of one and the arrival of the next.
 */
import { type Content, hasEnded, type Json, limitNames, outcomeStatusSchema, RivuletError, turnStatusSchema } from '@rivulet/protocol'
import { and, eq, notInArray, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { isOf, type Tenant, taskNotFound } from '../connection/tenant.ts'
import type { Statement } from '../connection/tenant-pool.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { outbox, tasks, turns } from '../schema.ts'

export const unfinished = turnStatusSchema.exclude(outcomeStatusSchema.options).options
/**
 * Lists in SQL. What is asked of a single turn or a single task is asked with `not in` the opposite: there are indexes that hold just the turns
 * in some state, of all tasks, and Postgres, as long as it does not know how many those are, would go through such an index for every task.
 */
export const unfinishedList = sqlList(unfinished)
export const endedList = sqlList(outcomeStatusSchema.options)
export const notQueuedList = sqlList(turnStatusSchema.exclude(['queued']).options)

/**
 * Whether nothing before a turn in its task waits or runs, in a query about turns. `offset 0`: so it stays a question about this turn's task,
 * whatever there is besides, and is not made a join of all turns.
 */
export const isNext = `not exists (
  select from turns earlier
  where earlier.task = turns.task and earlier.number < turns.number and earlier.status not in (${endedList}) offset 0
)`

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

/** The same for a transaction that is sent at once. A statement of its own: what comes after it is read when the lock is held. */
export function holdTaskOf(turn: string): Statement {
  return { name: 'hold_task', text: 'select from tasks where id = (select task from turns where id = $1) for update', values: [turn] }
}

/** The epoch after a change of the task's rows, in SQL about `tasks`: the next even number. */
export const raisedEpoch = 'tasks.epoch + 2 - tasks.epoch % 2'

/**
 * Called with every change of what viewers see in the task's rows, because a cursor of the rows has their epoch and stands for one content. A worker
 * goes on under the epoch of its claim; a claim, a reopening or a cancel takes the raised epoch to the log, which fences that worker off.
 */
export async function raiseEpoch(tx: Transaction, task: string, status?: TaskRow['status']): Promise<TaskRow> {
  const [raised] = await tx
    .update(tasks)
    .set({ epoch: sql.raw(raisedEpoch), ...(status && { status, updatedAt: sql`now()` }) })
    .where(eq(tasks.id, task))
    .returning()
  if (!raised) throw new Error(`Task ${task} is held, and yet gone`)
  return raised
}

export async function queueTurn(
  tx: Transaction,
  task: TaskRow,
  {
    input,
    params,
    delayMs = 0,
    maxQueued,
    traceparent,
  }: { input?: Content; params?: Json; delayMs?: number; maxQueued: number; traceparent?: string | undefined },
): Promise<TurnRow> {
  const pending = await pendingTurns(tx, task.id)
  if (pending.filter(turn => turn.status === 'queued').length >= maxQueued) {
    throw new RivuletError('too_many_turns', `${limitNames.queuedTurns}: ${maxQueued} turns of a task may wait`)
  }
  const said = { ...(input && { input }), ...(params !== undefined && { params }), traceparent }
  const isDispatched = pending.length === 0
  const fresh = { ...newTurn(task, 0, said), dispatch: isDispatched ? 1 : 0 }
  const times = { queuedAt: sql`now()`, runAt: msFromNow(delayMs), deadline: msFromNow(delayMs + task.timeoutMs) }
  const next = sql<number>`(select coalesce(max(number), 0) + 1 from turns where task = ${task.id})`
  const [turn] = await tx
    .insert(turns)
    .values({ ...fresh, ...times, number: next })
    .returning()
  if (!turn) throw new Error('The turn was not inserted')
  if (isDispatched) await tx.insert(outbox).values({ turn: turn.id })
  // A task is created with its first turn, under its first epoch.
  if (turn.number > 1) await raiseEpoch(tx, task.id, hasEnded(task.status) ? 'queued' : undefined)
  return turn
}

/** A turn before Postgres has said when it was queued. */
export type UntimedTurn = Omit<TurnRow, 'queuedAt' | 'runAt' | 'deadline'>

/** A turn as it is before a worker has claimed it or the relay has dispatched it. */
export function newTurn(
  task: Pick<TaskRow, 'id' | 'tenant'>,
  number: number,
  { input, params, traceparent }: { input?: Content; params?: Json; traceparent?: string | undefined },
): UntimedTurn {
  return {
    id: uuidv7(),
    task: task.id,
    tenant: task.tenant,
    number,
    status: 'queued',
    attempt: 0,
    input: input ?? null,
    params: params ?? null,
    stopReason: null,
    usage: null,
    error: null,
    errorDetail: null,
    startedAt: null,
    finishedAt: null,
    failures: 0,
    deaths: 0,
    dispatch: 0,
    firstIndex: null,
    epoch: null,
    claim: null,
    worker: null,
    leaseUntil: null,
    canceling: false,
    announced: false,
    endCursor: null,
    traceparent: traceparent ?? null,
  }
}

/** Turns that have not ended, in order. */
export async function pendingTurns(tx: Transaction, task: string): Promise<TurnRow[]> {
  const rows = tx.select().from(turns)
  return rows.where(and(eq(turns.task, task), notInArray(turns.status, outcomeStatusSchema.options))).orderBy(turns.number)
}

/** Sends a turn to the queue once this transaction is committed. */
export async function dispatch(tx: Transaction, turn: string): Promise<void> {
  await tx
    .update(turns)
    .set({ dispatch: sql`${turns.dispatch} + 1` })
    .where(eq(turns.id, turn))
  await tx.insert(outbox).values({ turn })
}

function sqlList(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ')
}
