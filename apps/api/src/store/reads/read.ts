/** Reads committed tasks, turns and messages. Pages are by key, so they stay correct while rows are added. */
import {
  type Cursor,
  type Json,
  type ListMessages,
  type ListTasks,
  type Message,
  maxPageSize,
  outcomeStatusSchema,
  RivuletError,
  type Task,
  type TaskId,
  type Turn,
} from '@rivulet/protocol'
import { and, asc, eq, gt, inArray, isNotNull, lt, max, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Database, Transaction } from '../connection/database.ts'
import { fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import { everyTenant, isOf, type Tenant, taskNotFound } from '../connection/tenant.ts'
import { type TurnRow, toMessage, toTask, toTurn } from '../rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { bytesOf, fitKeys, rowsToSend } from './byte-budget.ts'

export type Page<T, C> = { data: T[]; nextCursor: C | null }

export async function getTask(db: Database | Transaction, tenant: Tenant, id: string): Promise<Task> {
  const [row] = await db
    .select()
    .from(tasks)
    .where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  if (!row) throw taskNotFound()
  return toTask(row)
}

/** Whether there is such a task, without what it carries. */
export async function requireTask(db: Database, tenant: Tenant, id: string): Promise<void> {
  const [row] = await db
    .select({ id: tasks.id })
    .from(tasks)
    .where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  if (!row) throw taskNotFound()
}

/** The same of several tasks: the error lists the ones that do not exist. */
export async function requireTasks(db: Database, tenant: Tenant, ids: readonly TaskId[]): Promise<void> {
  const rows = await db
    .select({ id: tasks.id })
    .from(tasks)
    .where(and(inArray(tasks.id, [...ids]), isOf(tenant, tasks.tenant)))
  const found = new Set(rows.map(({ id }) => id))
  const missing = ids.filter(id => !found.has(id))
  if (missing.length > 0) throw taskNotFound(missing.map(id => ({ path: `/tasks/${id}`, reason: 'No such task' })))
}

export type TaskVersion = {
  /** Rises with every change of the task's rows. */
  epoch: number
  /** The cursor behind the last end in the task's log; null while a turn has not ended, or an end is not in the log yet. */
  endCursor: Cursor | null
}

/** Of its latest hundred turns, the end that was announced last is the last in the log: a turn that waited may end before the one that runs. */
export async function readTaskVersion(db: Database, tenant: Tenant, task: TaskId): Promise<TaskVersion> {
  const { rows } = await db.$client.query({ name: 'task_version', text: taskVersionText, values: [task, tenant] })
  const [found] = rows as { epoch: string; endCursor: Cursor | null }[]
  if (!found) throw taskNotFound()
  return { epoch: Number(found.epoch), endCursor: found.endCursor }
}

/** $1 task, $2 tenant. */
const taskVersionText = `
select epoch, (
  select case when bool_and(announced) then (array_agg(end_cursor order by
    split_part(end_cursor, '-', 1)::bigint desc nulls last, split_part(end_cursor, '-', 2)::bigint desc nulls last))[1] end
  from (select announced, end_cursor from turns where task = $1 order by number desc limit ${maxPageSize}) as latest
) as "endCursor"
from tasks where id = $1 and $2 in (tenant, '${everyTenant}')`

/** Of any tenant. */
export async function findTurn(db: Database, id: string): Promise<TurnRow | undefined> {
  const [row] = await db.select().from(turns).where(eq(turns.id, id))
  return row
}

/** Whose task a turn is of, for the worker that holds it; undefined for any other. */
export async function findHeldTask(db: Database, id: string, claim: string): Promise<Pick<TurnRow, 'task' | 'tenant'> | undefined> {
  const held = and(eq(turns.id, id), eq(turns.claim, claim), eq(turns.status, 'running'), eq(turns.canceling, false))
  const [row] = await db.select({ task: turns.task, tenant: turns.tenant }).from(turns).where(held)
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

/** Newest first: ids of tasks grow with time. The cursor is the last id of the page before. */
export async function listTasks(db: Database, tenant: Tenant, query: TaskFilter, maxBytes: number): Promise<Page<Task, string>> {
  const { limit } = query
  const keys = sql`select id from tasks where ${taskCondition(tenant, query)} order by id desc limit ${limit + 1}`
  const fit = fitKeys({ name: 'page', bytesAt: key => `(select ${taskBytes} from tasks where id = ${key})`, maxBytes: String(maxBytes) })
  const { rows } = await db.execute<PageRow>(sql`
    with recursive page_keys as (select array(${keys}) as keys),${sql.raw(fit)}
    select to_json(tasks) as row, cardinality(keys) > count as more
    from tasks, page_keys, (select ${sql.raw(rowsToSend('page', String(limit)))} as count) as page
    where id = any(keys[1:count]) order by id desc`)
  return pageOf(
    rows,
    row => toTask(fromJsonRow(tasks, row)),
    task => task.id,
  )
}

/** Which tasks a list is about. */
export function taskCondition(tenant: Tenant, filter: TaskFilter): SQL {
  const { agent, status, name, parent, q, createdAfter, createdBefore, errorCode, metadata, cursor } = filter
  const { minDurationMs, maxDurationMs } = filter
  const conditions: (SQL | undefined)[] = [
    isOf(tenant, tasks.tenant),
    agent && eq(tasks.agent, agent),
    status && eq(tasks.status, status),
    name !== undefined && eq(tasks.name, name),
    parent && eq(tasks.parent, parent),
    createdAfter && gt(tasks.createdAt, new Date(createdAfter)),
    createdBefore && lt(tasks.createdAt, new Date(createdBefore)),
    errorCode && and(inArray(tasks.status, ['failed', 'canceled']), sql`${lastErrorCode} = ${errorCode}`),
    minDurationMs !== undefined && sql`${ranMs} >= ${minDurationMs}`,
    maxDurationMs !== undefined && sql`${ranMs} <= ${maxDurationMs}`,
    cursor && lt(tasks.id, cursor),
    q !== undefined && hasText(q),
    ...Object.entries(metadata).map(([key, value]) => or(...readings(value).map(reading => contains(tasks.metadata, key, reading)))),
  ].filter(condition => typeof condition === 'object')
  return and(...conditions) ?? sql`true`
}

const lastErrorCode = sql.raw(`(select error->>'code' from turns where turns.task = tasks.id order by number desc limit 1)`)

const ranMs = sql.raw(
  `(select coalesce(sum(extract(epoch from finished_at - started_at) * 1000), 0) from turns where turns.task = tasks.id)`,
)

/** In the id from its beginning, the name, the metadata, or the first input; capitals do not matter. Large inputs are not searched. */
function hasText(text: string): SQL {
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
  const isInInput = sql`select from turns where turns.task = tasks.id and number = 1 and pg_column_size(input) <= ${maxReadInputBytes} and input::text ilike ${pattern}`
  return sql`(tasks.id::text ilike ${pattern.slice(1)} or tasks.name ilike ${pattern} or tasks.metadata::text ilike ${pattern} or exists (${isInInput}))`
}

/** Of an input that a list reads: Postgres would have to decompress all of a larger one. */
export const maxReadInputBytes = 65_536

const taskBytes = `${bytesOf('params')} + ${bytesOf('metadata')}`

/** A query string cannot say whether `5` is a number or a text: it is looked for as both. */
export function readings(value: string): Json[] {
  return /^(true|false|null|-?\d{1,15}(\.\d{1,15})?)$/.test(value) ? [value, JSON.parse(value)] : [value]
}

export function contains(metadata: PgColumn, key: string, value: Json): SQL {
  return sql`${metadata} @> ${JSON.stringify({ [key]: value })}::jsonb`
}

export type TaskFilter = Partial<
  Pick<
    ListTasks,
    | 'agent'
    | 'status'
    | 'name'
    | 'parent'
    | 'q'
    | 'createdAfter'
    | 'createdBefore'
    | 'errorCode'
    | 'minDurationMs'
    | 'maxDurationMs'
    | 'cursor'
  >
> & {
  limit: number
  metadata: Record<string, string>
}

/** By index. */
export async function listMessages(
  db: Database,
  tenant: Tenant,
  task: TaskId,
  { after = -1, limit, turn: turnNumber }: ListMessages,
  maxBytes: number,
  which: 'all' | 'kept' = 'all',
): Promise<Page<Message, number>> {
  const values = [task, tenant, after, limit, maxBytes]
  const { rows } = await db.$client.query(
    which === 'kept'
      ? { name: 'kept_message_page', text: messagePageText(isKept), values }
      : turnNumber === undefined
        ? { name: 'message_page', text: messagePageText(), values }
        : { name: 'message_page_of_turn', text: messagePageText('and turn = $6'), values: [...values, turnNumber] },
  )
  return pageOf(
    rows as PageRow[],
    row => toMessage(fromJsonRow(messages, row)),
    message => message.index,
  )
}

/** Not of a turn that was discarded. */
const isKept = 'and not exists (select from turns where turns.task = $1 and turns.number = messages.turn and turns.discarded)'

/** $1 task, $2 tenant, $3 after, $4 limit, $5 bytes. */
function messagePageText(condition = ''): string {
  const bytes = ['content', 'metadata', 'usage', 'response', 'error'].map(bytesOf).join(' + ')
  return `
    with recursive page_keys as (
      select array(
        select index from messages where task = $1 and $2 in (tenant, '${everyTenant}') and index > $3 ${condition} order by index limit $4 + 1
      ) as keys
    ),${fitKeys({ name: 'page', bytesAt: key => `(select ${bytes} from messages where task = $1 and index = ${key})`, maxBytes: '$5' })}
    select to_json(messages) as row, cardinality(keys) > count as more
    from messages, page_keys, (select ${rowsToSend('page', '$4')} as count) as page
    where task = $1 and index = any(keys[1:count]) order by index`
}

/** Everything that one turn has said, and its input. */
export async function turnMessages(db: Database | Transaction, tenant: Tenant, task: TaskId, turnNumber: number): Promise<Message[]> {
  const rows = await db
    .select()
    .from(messages)
    .where(and(eq(messages.task, task), isOf(tenant, messages.tenant), eq(messages.turn, turnNumber)))
    .orderBy(asc(messages.index))
  return rows.map(toMessage)
}

/** A row of a page, and whether there are rows after the page. */
type PageRow = { row: JsonRow; more: boolean }

function pageOf<T, C>(rows: readonly PageRow[], entityOf: (row: JsonRow) => T, cursorOf: (entity: T) => C): Page<T, C> {
  const data = rows.map(({ row }) => entityOf(row))
  const last = data.at(-1)
  return { data, nextCursor: rows[0]?.more && last !== undefined ? cursorOf(last) : null }
}
