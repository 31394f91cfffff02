/** Counts work: the waiting turns of all tenants together, and the unfinished turns of each tenant. */
import { and, eq, gte, inArray, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { turns } from '../schema.ts'
import { isDue, unfinished } from '../turns/turn-states.ts'

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

/** Tenants that have as many turns which have not ended as they may. */
export async function fullTenants(db: Database, most: number): Promise<Set<string>> {
  const rows = await db
    .select({ tenant: turns.tenant })
    .from(turns)
    .where(inArray(turns.status, unfinished))
    .groupBy(turns.tenant)
    .having(gte(sql`count(*)`, most))
  return new Set(rows.map(({ tenant }) => tenant))
}
