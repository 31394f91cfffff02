/**
 * Tasks as the lines of a list. Whatever a task carries, a line of it is short: Postgres cuts the title and the error, and reads no params.
 *
 * An input that takes more than 64 KiB in Postgres has no title, because Postgres would have to decompress all of it with every list.
 */

import type { TaskSummary } from '@rivulet/contract/tasks'
import { maxPageSize } from '@rivulet/protocol'
import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import type { Tenant } from '../connection/tenant.ts'
import { isDue } from '../turns/turn-states.ts'
import { bytesOf, fitKeys, rowsToSend } from './byte-budget.ts'
import { firstKept, maxReadInputBytes, searchTasks, type TaskFilter } from './list-tasks.ts'
import type { Page } from './pages.ts'

const maxTitle = 160
const maxError = 300

export async function summarizeTasks(
  db: Database,
  tenant: Tenant,
  filter: TaskFilter,
  maxBytes: number,
): Promise<Page<TaskSummary, string>> {
  return searchTasks(db, tenant, filter, condition => readPage(db, filter.limit, condition, maxBytes))
}

async function readPage(db: Database, limit: number, condition: SQL, maxBytes: number): Promise<Page<TaskSummary, string>> {
  const keys = sql`select id from tasks where ${condition} order by id desc limit ${limit + 1}`
  const bytesAt = (key: string) => `(select ${bytesOf('metadata')} + ${maxTitle + maxError} from tasks where id = ${key})`
  const { rows } = await db.execute<Row>(sql`
    with recursive page_keys as (select array(${keys}) as keys),${sql.raw(fitKeys({ name: 'page', bytesAt, maxBytes: String(maxBytes) }))}
    select tasks.id, agent, name, tasks.status, metadata, created_at, updated_at, figures.*, (${title}) as title,
      cardinality(keys) > count as more
    from page_keys, (select ${sql.raw(rowsToSend('page', String(limit)))} as count) as page, tasks, lateral (${sql.raw(figures)}) as figures
    where tasks.id = any(keys[1:count]) order by tasks.id desc`)
  const data = rows.map(toSummary)
  return { data, nextCursor: (rows[0]?.more && data.at(-1)?.id) || null }
}

const title = sql`${sql.raw(`select case when pg_column_size(input) > ${maxReadInputBytes} then null when input->>'type' = 'text' then left(input->>'text', ${maxTitle})
  when input->>'type' = 'data' then left(input->>'data', ${maxTitle}) else input->>'type' end
  from turns where turns.task = tasks.id and number =`)} ${firstKept}`

const tokens = `coalesce((used->>'totalTokens')::float8, coalesce((used->>'inputTokens')::float8, 0) + coalesce((used->>'outputTokens')::float8, 0))`

const figures = `select count(*) as turns,
    coalesce(sum(extract(epoch from finished_at - started_at) * 1000), 0) as ran_ms,
    min(started_at) filter (where finished_at is null) as running_since,
    min(run_at) filter (where status = 'queued' and not due) as due_at,
    coalesce(sum(${tokens}), 0) as tokens,
    case when bool_and(used is null or cost is not null) then sum(cost) end as cost,
    (array_agg(error->>'code' order by number desc))[1] as error_code,
    (array_agg(left(error->>'message', ${maxError}) order by number desc))[1] as error_message
  from (
    select number, status, coalesce(usage_total, usage) as used, cost, error, started_at, finished_at, run_at, ${isDue('turns')} as due
    from turns where turns.task = tasks.id order by number desc limit ${maxPageSize}
  ) as latest`

type Row = Pick<TaskSummary, 'id' | 'agent' | 'status' | 'metadata'> &
  Record<'name' | 'title' | 'error_code' | 'error_message', string | null> &
  Record<'turns' | 'ran_ms' | 'tokens', string | number> &
  Record<'created_at' | 'updated_at', string | Date> &
  Record<'running_since' | 'due_at', string | Date | null> & { cost: number | null; more: boolean }

function toSummary(row: Row): TaskSummary {
  const { id, agent, status, metadata, name, title, error_code: code, error_message: message } = row
  const hasFailed = status === 'failed' || status === 'canceled'
  return {
    ...{ id, agent, ...(name !== null && { name }), status, metadata, ...(title && { title }) },
    ...{ turns: Number(row.turns), ranMs: Math.max(0, Math.round(Number(row.ran_ms))) },
    ...(row.running_since && { runningSince: isoOf(row.running_since) }),
    ...(row.due_at && { dueAt: isoOf(row.due_at) }),
    tokens: Math.max(0, Math.round(Number(row.tokens))),
    ...(row.cost !== null && { cost: row.cost }),
    ...(hasFailed && code !== null && { error: { code, message: message ?? '' } }),
    ...{ createdAt: isoOf(row.created_at), updatedAt: isoOf(row.updated_at) },
  }
}

function isoOf(time: string | Date): string {
  return new Date(time).toISOString()
}
