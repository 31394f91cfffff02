/** How much work waits, of all tenants together. */
import { and, eq, lte, sql } from 'drizzle-orm'
import type { Database } from './database.ts'
import { turns } from './schema.ts'

/** Turns that are due and not taken yet. Counts no further than it is asked to: a queue that is too long takes no longer to look at. */
export async function countWaiting(db: Database, atMost: number): Promise<number> {
  const due = db
    .select({ one: sql`1`.as('one') })
    .from(turns)
    .where(and(eq(turns.status, 'queued'), lte(turns.runAt, sql`now()`)))
    .limit(atMost)
    .as('due')
  const [row] = await db.select({ count: sql`count(*)`.mapWith(Number) }).from(due)
  return row?.count ?? 0
}
