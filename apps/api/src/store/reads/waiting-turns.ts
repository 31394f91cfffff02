/** Counts work: the waiting turns of all tenants together, and the unfinished turns of each tenant. */
import { and, count, eq, gte, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { turns } from '../schema.ts'
import { isDue, unfinishedList } from '../turns/turn-states.ts'

/** Those that a quota counts, as the index `turns_unfinished` has them. One that is being canceled does not count, so an interrupt takes its place. */
const counts = sql.raw(`turns.status in (${unfinishedList}) and not turns.canceling`)

/** Turns that are due and not taken yet. Counts no further than it is asked to: a queue that is too long takes no longer to look at. */
export async function countWaiting(db: Database, atMost: number): Promise<number> {
  const due = db
    .select({ one: sql`1`.as('one') })
    .from(turns)
    .where(and(eq(turns.status, 'queued'), sql.raw(isDue('turns'))))
    .limit(atMost)
    .as('due')
  const [row] = await db.select({ count: sql`count(*)`.mapWith(Number) }).from(due)
  return row?.count ?? 0
}

/** The turns that have not ended, of each tenant that has at least so many. */
export async function countUnfinished(db: Database, atLeast: number): Promise<Map<Tenant, number>> {
  const rows = await db
    .select({ tenant: turns.tenant, unfinished: count() })
    .from(turns)
    .where(counts)
    .groupBy(turns.tenant)
    .having(gte(count(), atLeast))
  return new Map(rows.map(row => [row.tenant, row.unfinished]))
}

/** Whether a tenant has more than so many turns that have not ended. */
export async function exceedsTurns(tx: Transaction, tenant: Tenant, most: number): Promise<boolean> {
  const rows = await tx
    .select({ one: sql`1` })
    .from(turns)
    .where(and(isOf(tenant, turns.tenant), counts))
    .offset(most)
    .limit(1)
  return rows.length > 0
}
