/** Reading: tasks, turns and messages as they are committed. Pages are by key, so they stay right while rows are added. */
import {
  type Json,
  type ListMessages,
  type ListTasks,
  type Message,
  maxPageSize,
  outcomeStatusSchema,
  type Task,
  type Turn,
} from '@rivulet/protocol'
import { and, asc, desc, eq, gt, inArray, isNotNull, lt, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from './database.ts'
import { type TurnRow, toMessage, toTask, toTurn } from './rows.ts'
import { messages, tasks, turns } from './schema.ts'
import { isOf, type Tenant, taskNotFound } from './tenant.ts'

export type Page<T, C> = { data: T[]; nextCursor: C | null }

export async function getTask(db: Database | Transaction, tenant: Tenant, id: string): Promise<Task> {
  const [row] = await db
    .select()
    .from(tasks)
    .where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  if (!row) throw taskNotFound()
  return toTask(row)
}

export async function epochOf(db: Database, tenant: Tenant, task: string): Promise<number> {
  const own = and(eq(tasks.id, task), isOf(tenant, tasks.tenant))
  const [row] = await db.select({ epoch: tasks.epoch }).from(tasks).where(own)
  return row?.epoch ?? 0
}

/** Of any tenant. */
export async function findTurn(db: Database, id: string): Promise<TurnRow | undefined> {
  const [row] = await db.select().from(turns).where(eq(turns.id, id))
  return row
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

export async function hasTurn(db: Database, tenant: Tenant, task: string, number: number): Promise<boolean> {
  const [row] = await db
    .select({ id: turns.id })
    .from(turns)
    .where(and(eq(turns.task, task), isOf(tenant, turns.tenant), eq(turns.number, number)))
  return row !== undefined
}

/** The turn that may have said something and has not ended. Not told by its attempts: one that was given back is not counted. */
export async function startedTurn(db: Database, tenant: Tenant, task: string): Promise<TurnRow | undefined> {
  const own = and(eq(turns.task, task), isOf(tenant, turns.tenant))
  const started = and(own, notInArray(turns.status, outcomeStatusSchema.options), isNotNull(turns.firstIndex))
  const [row] = await db.select().from(turns).where(started).limit(1)
  return row
}

/** Ascending, the latest hundred. */
export async function latestTurns(db: Database, tenant: Tenant, task: string): Promise<Turn[]> {
  const own = and(eq(turns.task, task), isOf(tenant, turns.tenant))
  const rows = await db.select().from(turns).where(own).orderBy(desc(turns.number)).limit(maxPageSize)
  return rows.reverse().map(toTurn)
}

export type TurnStanding = Pick<TurnRow, 'number' | 'status'>

/** Of the latest hundred. */
export async function turnStandings(db: Database, tenant: Tenant, task: string): Promise<TurnStanding[]> {
  const own = and(eq(turns.task, task), isOf(tenant, turns.tenant))
  return db.select({ number: turns.number, status: turns.status }).from(turns).where(own).orderBy(desc(turns.number)).limit(maxPageSize)
}

/** Newest first: ids of tasks grow with time. The cursor is the last id of the page before. */
export async function listTasks(db: Database, tenant: Tenant, query: TaskFilter): Promise<Page<Task, string>> {
  const { agent, status, name, metadata, limit, cursor } = query
  const conditions: (SQL | undefined)[] = [
    isOf(tenant, tasks.tenant),
    agent && eq(tasks.agent, agent),
    status && eq(tasks.status, status),
    name !== undefined && eq(tasks.name, name),
    cursor && lt(tasks.id, cursor),
    ...Object.entries(metadata).map(([key, value]) => or(...readings(value).map(reading => contains(key, reading)))),
  ].filter(condition => typeof condition === 'object')
  const rows = await db
    .select()
    .from(tasks)
    .where(and(...conditions))
    .orderBy(desc(tasks.id))
    .limit(limit + 1)
  return page(rows.map(toTask), limit, task => task.id)
}

/** A query string cannot say whether `5` is a number or a text: it is looked for as both. */
function readings(value: string): Json[] {
  return /^(true|false|null|-?\d{1,15}(\.\d{1,15})?)$/.test(value) ? [value, JSON.parse(value)] : [value]
}

function contains(key: string, value: Json): SQL {
  return sql`${tasks.metadata} @> ${JSON.stringify({ [key]: value })}::jsonb`
}

export type TaskFilter = { [K in 'agent' | 'status' | 'name' | 'cursor']: ListTasks[K] | undefined } & {
  limit: number
  metadata: Record<string, string>
}

export async function listMessages(
  db: Database,
  tenant: Tenant,
  task: string,
  { after, limit, turn }: ListMessages,
): Promise<Page<Message, number>> {
  const range = and(
    eq(messages.task, task),
    isOf(tenant, messages.tenant),
    after === undefined ? undefined : gt(messages.index, after),
    turn === undefined ? undefined : eq(messages.turn, turn),
  )
  const rows = await db
    .select()
    .from(messages)
    .where(range)
    .orderBy(asc(messages.index))
    .limit(limit + 1)
  return page(rows.map(toMessage), limit, message => message.index)
}

/** Everything that one turn has said, and its input. */
export async function turnMessages(db: Database, tenant: Tenant, task: string, turn: number): Promise<Message[]> {
  const rows = await db
    .select()
    .from(messages)
    .where(and(eq(messages.task, task), isOf(tenant, messages.tenant), eq(messages.turn, turn)))
    .orderBy(asc(messages.index))
  return rows.map(toMessage)
}

function page<T, C>(rows: T[], limit: number, cursorOf: (row: T) => C): Page<T, C> {
  const data = rows.slice(0, limit)
  const last = data.at(-1)
  return { data, nextCursor: rows.length > limit && last !== undefined ? cursorOf(last) : null }
}
