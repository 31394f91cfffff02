/**
 * The state of a task. Each turn that changes it leaves a row, and what stands is the latest one, so that a rewind and a fork find what stood after a turn. A
 * caller's change belongs to the turn before it. The version only grows, also by a rewind, so that a version names one value for ever.
 */
import { type Json, noState, RivuletError, type State, type TaskId } from '@rivulet/protocol'
import { and, desc, eq, gt, isNotNull, lte, max, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { everyTenant, isOf, type Readable, type Tenant } from '../connection/tenant.ts'
import { requireTask } from '../reads/tasks.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { states, tasks, turns } from '../schema.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { pendingTurns } from '../turns/turn-states.ts'

type StateRow = typeof states.$inferSelect

export async function getState(db: Database, tenant: Tenant, task: TaskId): Promise<State> {
  await requireTask(db, tenant, task)
  const row = await latestRow(db, tenant, task)
  return row ? toState(row) : noState
}

export type StateAround = { state: State | null; keptState: State | null }

/** What a turn begins with, in SQL about a turn under this name. */
export function stateBefore(alias: string): string {
  return `(select ${stateJson} from states where states.task = ${alias}.task and states.turn < ${alias}.number order by states.turn desc limit 1)`
}

/** What a turn had made of the state when it parked, in SQL about a turn under this name. */
export function stateOf(alias: string): string {
  return `(select ${stateJson} from states where states.task = ${alias}.task and states.turn = ${alias}.number)`
}

const stateJson = `json_build_object('version', states.version, 'value', states.value)`

export async function stateAround(db: Database | Transaction, { task, number }: Pick<TurnRow, 'task' | 'number'>): Promise<StateAround> {
  const { rows } = await db.execute<StateAround>(sql`
    select ${sql.raw(stateBefore('own'))} as state, ${sql.raw(stateOf('own'))} as "keptState"
    from (values (${task}::uuid, ${number}::int)) as own (task, number)`)
  return rows[0] ?? { state: null, keptState: null }
}

/** Stores what a turn has made of the state, when it ends or parks. A turn that a rewind has discarded meanwhile changes nothing. */
export async function storeState(tx: Transaction, { task, number, tenant, discarded }: TurnRow, state: State | null): Promise<void> {
  if (!state || discarded) return
  await tx.delete(states).where(and(eq(states.task, task), eq(states.turn, number)))
  const { state: before } = await stateAround(tx, { task, number })
  if (state.version === (before ?? noState).version) return
  await tx.insert(states).values({ task, turn: number, tenant, ...inJson(state) })
}

/** @param matches whether the caller knows this version */
export async function putState(
  tx: Transaction,
  caller: Readable,
  id: TaskId,
  value: Json,
  matches: (version: number) => boolean,
): Promise<State> {
  const task = await lockTask(tx, caller, id)
  const hasBegun = (await pendingTurns(tx, id)).some(({ firstIndex }) => firstIndex !== null)
  if (hasBegun) throw new RivuletError('task_busy', 'A turn of this task has begun and has not ended')
  const before = await latestRow(tx, caller.tenant, id)
  if (!matches(before?.version ?? 0))
    throw new RivuletError('precondition_failed', `The state of this task has version ${before?.version ?? 0}`)
  return changeBetweenTurns(tx, task, { turn: await lastBegun(tx, id), version: (before?.version ?? 0) + 1, value })
}

/** Restores what stood after a turn, for a rewind to it. */
export async function rewindState(tx: Transaction, task: TaskRow, after: number): Promise<void> {
  const last = await latestRow(tx, everyTenant, task.id)
  if (!last || last.turn <= after) return
  await tx.delete(states).where(and(eq(states.task, task.id), gt(states.turn, after)))
  const kept = await latestRow(tx, everyTenant, task.id)
  await changeBetweenTurns(tx, task, { turn: kept?.turn ?? 0, version: last.version + 1, value: kept?.value ?? null })
}

/** A change that no turn makes. Its event is owed to the log. A viewer that had everything when the last turn ended has not any more. */
async function changeBetweenTurns(tx: Transaction, task: TaskRow, { turn, ...state }: State & { turn: number }): Promise<State> {
  const changed = { ...inJson(state), owed: true }
  await tx
    .insert(states)
    .values({ task: task.id, turn, tenant: task.tenant, ...changed })
    .onConflictDoUpdate({ target: [states.task, states.turn], set: changed })
  await tx
    .update(turns)
    .set({ endCursor: null })
    .where(and(eq(turns.task, task.id), isNotNull(turns.endCursor)))
  await raiseEpoch(tx, task.id)
  return state
}

/**
 * Has a change that is owed to the log told. The task is held meanwhile, because the start of its next turn tells the state as well, and this must not
 * come after it.
 */
export async function tellOwedState(
  db: Database,
  task: TaskId,
  tell: (state: State & { turn: number }) => Promise<void>,
): Promise<boolean> {
  return db.transaction(async tx => {
    const isOwed = and(eq(states.task, task), eq(states.owed, true))
    const [held] = await tx.select({ id: tasks.id }).from(tasks).where(eq(tasks.id, task)).for('update')
    const [owed] = held ? await tx.select().from(states).where(isOwed) : []
    if (!owed) return false
    await tell({ ...toState(owed), turn: owed.turn })
    await tx.update(states).set({ owed: false }).where(isOwed)
    return true
  })
}

/** Tasks whose state may not be in their log. */
export async function tasksWithOwedState(db: Database, limit: number): Promise<{ task: TaskId; version: number }[]> {
  return db.select({ task: states.task, version: states.version }).from(states).where(eq(states.owed, true)).limit(limit)
}

export async function copyStates(tx: Transaction, source: TaskRow, copy: TaskRow, upTo: number): Promise<void> {
  await tx.execute(sql`
    insert into ${states} (task, turn, tenant, version, value)
    select ${copy.id}, turn, tenant, version, value from ${states} where ${and(eq(states.task, source.id), lte(states.turn, upTo))}`)
}

async function latestRow(db: Database | Transaction, tenant: Tenant, task: TaskId): Promise<StateRow | undefined> {
  const own = and(eq(states.task, task), isOf(tenant, states.tenant))
  const [row] = await db.select().from(states).where(own).orderBy(desc(states.turn)).limit(1)
  return row
}

async function lastBegun(tx: Transaction, task: TaskId): Promise<number> {
  const begun = and(eq(turns.task, task), isNotNull(turns.firstIndex))
  const [row] = await tx
    .select({ number: max(turns.number) })
    .from(turns)
    .where(begun)
  return row?.number ?? 0
}

function toState({ version, value }: StateRow): State {
  return { version, value }
}

/** The value as text, because drizzle writes null as an absent value. */
function inJson({ version, value }: State) {
  return { version, value: sql`${JSON.stringify(value)}::json` }
}
