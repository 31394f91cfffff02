/** Moments by Postgres' clock. It alone decides what is due, late or expired, because the clocks of processes differ. */
import { type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Database, Transaction } from './database.ts'

export function msAgo(ms: number): SQL {
  return sql`now() - ${ms} * interval '1 millisecond'`
}

/** How far away a moment is; negative when it has passed. */
export function msUntil(moment: PgColumn): SQL<number> {
  return sql<number>`(extract(epoch from ${moment} - now()) * 1000)::float8`
}

export function msFromNow(ms: number): SQL {
  return sql`now() + ${ms} * interval '1 millisecond'`
}

/** The lowest uuid of version 7 that can have been made after this moment, as far as the clock of its API was right. */
export function firstIdAfter(moment: SQL): SQL {
  const ms = sql`greatest(0, floor(extract(epoch from ${moment}) * 1000))::bigint`
  return sql`(lpad(to_hex(${ms}), 12, '0') || '70008000000000000000')::uuid`
}

export async function readNowMs(db: Database): Promise<number> {
  const { rows } = await db.execute<{ now: number }>(sql`select floor(extract(epoch from now()) * 1000)::float8 as now`)
  return rows[0]?.now ?? 0
}

/** ISO 8601. */
export async function readNow(tx: Transaction): Promise<string> {
  const { rows } = await tx.execute<{ now: number }>(sql`select floor(extract(epoch from now()) * 1000)::float8 as now`)
  return new Date(rows[0]?.now ?? 0).toISOString()
}
