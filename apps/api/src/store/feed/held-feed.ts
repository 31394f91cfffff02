/** Whether an open transaction holds the feed back: readers get no entry of a transaction before every older one has ended (`read-feed.ts`). */
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { feed } from '../schema.ts'
import { horizon } from './read-feed.ts'

/** The age of the oldest entry that is held back, and the transaction that holds it, as far as our login may see that. */
type HeldFeed = { seconds: number; holder: string }

export async function readHeldFeed(db: Database): Promise<HeldFeed> {
  const { rows } = await db.execute<{ seconds: string | null; holder: string }>(sql`
    select extract(epoch from now() - (select min(at) from ${feed} where xid >= ${horizon})) as seconds, coalesce(
      (select format('process %s of %s (%s), %s', pid, usename, application_name, state)
        from pg_stat_activity where backend_xid is not null order by age(backend_xid) desc limit 1),
      (select format('prepared transaction %s', gid) from pg_prepared_xacts order by age(transaction) desc limit 1),
      'a transaction of another login') as holder
  `)
  const [{ seconds, holder } = { seconds: null, holder: '' }] = rows
  return { seconds: Math.max(0, Number(seconds)), holder }
}
