/** Reads committed turns, one or a few at a time. */
import { outcomeStatusSchema, RivuletError, type TaskId, type Turn, type TurnId } from '@rivulet/protocol'
import { and, asc, desc, eq, gte, inArray, isNotNull, lte, max, notInArray } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { type TurnRow, toTurn } from '../rows.ts'
import { turns } from '../schema.ts'
import { isHeldBy } from '../turns/held-turn.ts'
import { requireTask } from './tasks.ts'

/** Of any tenant. */
export async function findTurn(db: Database, id: string): Promise<TurnRow | undefined> {
  const [row] = await db.select().from(turns).where(eq(turns.id, id))
  return row
}

/** Whose task a turn is of, for the worker that holds it; undefined for any other. */
export async function findHeldTask(db: Database, id: TurnId, claim: string): Promise<Pick<TurnRow, 'task' | 'tenant'> | undefined> {
  const [row] = await db.select({ task: turns.task, tenant: turns.tenant }).from(turns).where(isHeldBy(id, claim))
  return row
}

/** Those of these turns that a worker may hold now, each with the claim of its holder. */
export async function findHeldTurns(db: Database, ids: readonly string[]): Promise<Pick<TurnRow, 'id' | 'task' | 'claim' | 'epoch'>[]> {
  const held = and(inArray(turns.id, [...ids]), eq(turns.status, 'running'), eq(turns.canceling, false))
  return db.select({ id: turns.id, task: turns.task, claim: turns.claim, epoch: turns.epoch }).from(turns).where(held)
}

/** Those that a worker holds under one claim. Few turns run at a time, so they are searched for it. */
export async function findClaimedTurns(db: Database, worker: string, claim: string): Promise<TurnId[]> {
  const held = and(eq(turns.status, 'running'), eq(turns.canceling, false), eq(turns.claim, claim), eq(turns.worker, worker))
  const rows = await db.select({ id: turns.id }).from(turns).where(held)
  return rows.map(({ id }) => id)
}

/** In the order of their ids. */
export async function findTurns(db: Database, ids: readonly string[]): Promise<(TurnRow | undefined)[]> {
  const rows = await db
    .select()
    .from(turns)
    .where(inArray(turns.id, [...ids]))
  const found = new Map(rows.map(row => [row.id, row]))
  return ids.map(id => found.get(id))
}

export async function hasTurn(db: Database, tenant: Tenant, task: TaskId, number: number): Promise<boolean> {
  const [row] = await db
    .select({ id: turns.id })
    .from(turns)
    .where(and(eq(turns.task, task), isOf(tenant, turns.tenant), eq(turns.number, number)))
  return row !== undefined
}

export async function lastTurnNumber(tx: Transaction, task: TaskId): Promise<number> {
  const [row] = await tx
    .select({ number: max(turns.number) })
    .from(turns)
    .where(eq(turns.task, task))
  return row?.number ?? 0
}

/** The numbers of the turns that have begun and that no rewind has discarded, from one of them on. */
export async function startedTurnNumbers(
  db: Database,
  tenant: Tenant,
  task: TaskId,
  { from, order, limit }: { from: number | null; order: 'asc' | 'desc'; limit: number },
): Promise<number[]> {
  await requireTask(db, tenant, task)
  const [reaches, by] = order === 'asc' ? ([gte, asc] as const) : ([lte, desc] as const)
  const rows = await db
    .select({ number: turns.number })
    .from(turns)
    .where(
      and(
        eq(turns.task, task),
        isOf(tenant, turns.tenant),
        eq(turns.discarded, false),
        isNotNull(turns.firstIndex),
        from === null ? undefined : reaches(turns.number, from),
      ),
    )
    .orderBy(by(turns.number))
    .limit(limit)
  return rows.map(({ number }) => number)
}

/** With its input and its params, whatever their size. */
export async function getTurn(db: Database, tenant: Tenant, task: TaskId, number: number, toShown = toTurn): Promise<Turn> {
  await requireTask(db, tenant, task)
  const [row] = await db
    .select()
    .from(turns)
    .where(and(eq(turns.task, task), isOf(tenant, turns.tenant), eq(turns.number, number)))
  if (!row) throw new RivuletError('not_found', 'No such turn in this task')
  return toShown(row)
}

/** The turn that may have said something and has not ended. Not told by its attempts: one that was given back is not counted. */
export async function startedTurn(db: Database, tenant: Tenant, task: TaskId): Promise<TurnRow | undefined> {
  const own = and(eq(turns.task, task), isOf(tenant, turns.tenant))
  const started = and(own, notInArray(turns.status, outcomeStatusSchema.options), isNotNull(turns.firstIndex))
  const [row] = await db.select().from(turns).where(started).limit(1)
  return row
}
