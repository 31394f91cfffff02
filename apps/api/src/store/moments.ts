/** Moments by the clock of Postgres, which is the one that all processes share. */
import { type SQL, sql } from 'drizzle-orm'

export function msAgo(ms: number): SQL {
  return sql`now() - ${ms} * interval '1 millisecond'`
}

export function msFromNow(ms: number): SQL {
  return sql`now() + ${ms} * interval '1 millisecond'`
}
