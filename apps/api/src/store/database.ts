/** The connection to Postgres. A server that is away, frozen or locked makes a query fail within seconds; it never makes a request hang. */
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { Pool } from 'pg'
import * as schema from './schema.ts'

export type Database = NodePgDatabase<typeof schema>
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0]

export type DatabaseHandle = { db: Database; pool: Pool; close(): Promise<void> }

export function openDatabase({ url, onError }: { url: string; onError: (error: Error) => void }): DatabaseHandle {
  const pool = new Pool({
    connectionString: url,
    max: 20,
    connectionTimeoutMillis: 3_000,
    query_timeout: 5_000,
    statement_timeout: 5_000,
    lock_timeout: 3_000,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
  })
  // Without a listener, a connection that is closed by the server ends the process: an idle one tells the pool, one that is lent out itself.
  pool.on('error', onError)
  pool.on('connect', client => client.on('error', onError))
  return { db: drizzle(pool, { schema, casing: 'snake_case' }), pool, close: () => pool.end() }
}

/** The SQLSTATE of a database error, wherever drizzle has wrapped it. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string' && /^[0-9A-Z]{5}$/.test(cause.code)) return cause.code
  }
  return undefined
}

/** Whether Postgres could not be asked, as opposed to having refused. */
export function isDatabaseAway(error: unknown): boolean {
  const state = sqlStateOf(error)
  // 08: connection, 53: out of resources, 57: shut down or canceled, 25P03: idle too long, 55P03: lock not to be had.
  if (state) return /^(08|53|57)/.test(state) || state === '25P03' || state === '55P03'
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string' && networkCodes.has(cause.code)) return true
    if (/timeout|terminated|not queryable|Connection (ended|closed)/i.test(cause.message) && cause.name === 'Error') return true
  }
  return false
}

const networkCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH', 'ENOENT'])
