/** The waits of a tenant, oldest first: ids of waits grow with time. The cursor is the last id of the page before. */
import type { ListWaits } from '@rivulet/contract/waits'
import type { Wait } from '@rivulet/protocol'
import { and, asc, count, eq, gt, inArray, or, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { contains, readings } from '../reads/list-tasks.ts'
import { type Page, searchInPieces } from '../reads/pages.ts'
import { waits } from '../schema.ts'
import { toWait } from './wait-rows.ts'

export type WaitFilter = { [K in 'kind' | 'agent' | 'assignee' | 'task' | 'cursor']: ListWaits[K] | undefined } & {
  status: ListWaits['status']
  limit: number
  metadata: Record<string, string>
}

/** How many waits one call looks at for those with this metadata. */
const maxSearchedWaits = 10_000

export async function listWaits(db: Database, tenant: Tenant, query: WaitFilter, maxBytes: number): Promise<Page<Wait, string>> {
  const { status, kind, agent, assignee, task, cursor, limit, metadata } = query
  const indexed = and(
    isOf(tenant, waits.tenant),
    eq(waits.status, status),
    kind ? inArray(waits.kind, kind) : undefined,
    agent ? eq(waits.agent, agent) : undefined,
    assignee === undefined ? undefined : eq(waits.assignee, assignee),
    task ? eq(waits.task, task) : undefined,
    cursor ? gt(waits.id, cursor) : undefined,
  )
  const searched = Object.entries(metadata).map(([key, value]) =>
    or(...readings(value).map(reading => contains(waits.metadata, key, reading))),
  )
  if (searched.length === 0) return readPage(indexed)
  return searchInPieces(db, { table: 'waits', order: 'asc', indexed: indexed ?? sql`true` }, maxSearchedWaits, isWithin =>
    readPage(and(indexed, ...searched, isWithin)),
  )

  async function readPage(condition: SQL | undefined): Promise<Page<Wait, string>> {
    const rows = await db
      .select()
      .from(waits)
      .where(condition)
      .orderBy(asc(waits.id))
      .limit(limit + 1)
    const data = fitting(rows.slice(0, limit).map(toWait), maxBytes)
    return { data, nextCursor: rows.length > data.length ? (data.at(-1)?.id ?? null) : null }
  }
}

/** Of all tenants, for operators. */
export async function countOpenWaits(db: Database): Promise<{ agent: string; kind: string; count: number; oldestMs: number }[]> {
  const oldest = sql`floor(extract(epoch from now() - min(${waits.createdAt})) * 1000)`.mapWith(Number)
  return db
    .select({ agent: waits.agent, kind: sql<string>`${waits.kind}`, count: count(), oldestMs: oldest })
    .from(waits)
    .where(eq(waits.status, 'open'))
    .groupBy(waits.agent, waits.kind)
}

/** At least one: a page without a wait would never end. */
function fitting(found: Wait[], maxBytes: number): Wait[] {
  let bytes = 0
  const end = found.findIndex(wait => {
    bytes += Buffer.byteLength(JSON.stringify(wait))
    return bytes > maxBytes
  })
  return end < 0 ? found : found.slice(0, Math.max(1, end))
}
