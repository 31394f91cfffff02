/** Lists the tasks of a tenant that fit a filter. */

import type { ListTasks } from '@rivulet/contract/tasks'
import type { Json, Task } from '@rivulet/protocol'
import { and, eq, gt, inArray, lt, or, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Database } from '../connection/database.ts'
import { fromJsonRow } from '../connection/json-rows.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { toTask } from '../rows.ts'
import { tasks } from '../schema.ts'
import { bytesOf, fitKeys, rowsToSend } from './byte-budget.ts'
import { fingerprint } from './error-groups.ts'
import { type Page, type PageRow, pageOf, searchInPieces } from './pages.ts'

/** Newest first: ids of tasks grow with time. The cursor is the last id of the page before. */
export async function listTasks(db: Database, tenant: Tenant, query: TaskFilter, maxBytes: number): Promise<Page<Task, string>> {
  return searchTasks(db, tenant, query, condition => readPage(db, query.limit, condition, maxBytes))
}

async function readPage(db: Database, limit: number, condition: SQL, maxBytes: number): Promise<Page<Task, string>> {
  const keys = sql`select id from tasks where ${condition} order by id desc limit ${limit + 1}`
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

/** How many tasks one call of a search looks at. */
const maxSearchedTasks = 10_000
/** A search by `q` reads their first inputs, too. */
const maxSearchedInputs = 1_000

/** Reads the page of the tasks that fit a filter. A search may end before all of them. */
export async function searchTasks<T>(
  db: Database,
  tenant: Tenant,
  filter: TaskFilter,
  read: (condition: SQL) => Promise<Page<T, string>>,
): Promise<Page<T, string>> {
  const indexed = indexedCondition(tenant, filter)
  const searched = searchCondition(filter)
  if (searched === undefined) return read(indexed)
  const most = filter.q === undefined ? maxSearchedTasks : maxSearchedInputs
  return searchInPieces(db, { table: 'tasks', order: 'desc', indexed }, most, isWithin =>
    read(and(indexed, searched, isWithin) ?? searched),
  )
}

function indexedCondition(tenant: Tenant, filter: TaskFilter): SQL {
  const { agent, status, name, parent, createdAfter, createdBefore, cursor } = filter
  const conditions: (SQL | undefined)[] = [
    isOf(tenant, tasks.tenant),
    agent && eq(tasks.agent, agent),
    status && eq(tasks.status, status),
    name !== undefined && eq(tasks.name, name),
    parent && eq(tasks.parent, parent),
    createdAfter && gt(tasks.createdAt, new Date(createdAfter)),
    createdBefore && lt(tasks.createdAt, new Date(createdBefore)),
    cursor && lt(tasks.id, cursor),
  ].filter(condition => typeof condition === 'object')
  return and(...conditions) ?? sql`true`
}

/** Of each task, this reads the metadata or the turns. */
function searchCondition({ q, errorCode, errorFingerprint, metadata, minDurationMs, maxDurationMs }: TaskFilter): SQL | undefined {
  const conditions: (SQL | undefined)[] = [
    errorCode && and(inArray(tasks.status, ['failed', 'canceled']), sql`${lastErrorCode} = ${errorCode}`),
    errorFingerprint &&
      sql`exists (select from turns where turns.task = tasks.id and turns.status = 'failed' and ${fingerprint} = ${errorFingerprint})`,
    minDurationMs !== undefined && sql`${ranMs} >= ${minDurationMs}`,
    maxDurationMs !== undefined && sql`${ranMs} <= ${maxDurationMs}`,
    q !== undefined && hasText(q),
    ...Object.entries(metadata).map(([key, value]) => or(...readings(value).map(reading => contains(tasks.metadata, key, reading)))),
  ].filter(condition => typeof condition === 'object')
  return and(...conditions)
}

const lastErrorCode = sql.raw(`(select error->>'code' from turns where turns.task = tasks.id order by number desc limit 1)`)

const ranMs = sql.raw(
  `(select coalesce(sum(extract(epoch from finished_at - started_at) * 1000), 0) from turns where turns.task = tasks.id)`,
)

/** The number of the first turn that is part of the conversation: an edit discards the turns that it replaces. */
export const firstKept = sql.raw(`coalesce((select min(number) from turns as kept where kept.task = tasks.id and not kept.discarded), 1)`)

/** In the id from its beginning, the name, the metadata, or the first input; capitals do not matter. Large metadata and inputs are not searched. */
function hasText(text: string): SQL {
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
  const isInInput = sql`select from turns where turns.task = tasks.id and number = ${firstKept} and pg_column_size(input) <= ${maxReadInputBytes} and input::text ilike ${pattern}`
  const isInMetadata = sql`pg_column_size(tasks.metadata) <= ${maxSearchedMetadataBytes} and tasks.metadata::text ilike ${pattern}`
  return sql`(tasks.id::text ilike ${pattern.slice(1)} or tasks.name ilike ${pattern} or ${isInMetadata} or exists (${isInInput}))`
}

/** Of an input that a list reads: Postgres would have to decompress all of a larger one. */
export const maxReadInputBytes = 65_536

/** As it is stored: text compresses to a tenth or less. */
const maxSearchedMetadataBytes = 16_384

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
    | 'errorFingerprint'
    | 'minDurationMs'
    | 'maxDurationMs'
    | 'cursor'
  >
> & {
  limit: number
  metadata: Record<string, string>
}
