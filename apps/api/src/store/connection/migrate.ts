/**
 * Migrates a database to this version's schema. Any number of processes may run it at once, because an advisory lock admits one at a time.
 *
 * A migration that waits for a table blocks every statement behind it on that table. So it waits for a second at most, and then starts again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator'
import { Client } from 'pg'
import { sqlStateOf } from './database-errors.ts'

export const migrationsFolder = fileURLToPath(new URL('../../../../../migrations', import.meta.url))
const advisoryLock = 7_233_485_001
const lockTimeoutMs = 1_000
const lockNotAvailable = '55P03'

export type MigrateOptions = {
  folder?: string
  /** Another session holds a lock on a table, so the migration starts again. */
  onBlocked?: (reason: string) => void
}

export async function migrate(url: string, { folder = migrationsFolder, onBlocked = () => {} }: MigrateOptions = {}): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [advisoryLock])
    // The schema is shared by all tenants.
    await client.query("select set_config('rivulet.tenant', '*', false)")
    // After the advisory lock, which may take as long as the migrations of another process.
    await client.query(`set lock_timeout = ${lockTimeoutMs}`)
    await apply(client, folder, onBlocked)
  } finally {
    await client.end()
  }
}

async function apply(client: Client, folder: string, onBlocked: (reason: string) => void): Promise<void> {
  for (;;) {
    try {
      return await applyMigrations(drizzle(client), { migrationsFolder: folder })
    } catch (error) {
      if (sqlStateOf(error) !== lockNotAvailable) throw error
      onBlocked('a migration waits for a table that another session has locked (see pg_stat_activity); retrying')
      await sleep(lockTimeoutMs)
    }
  }
}
