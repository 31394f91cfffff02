/** Migrates a database to this version's schema. Any number of processes may run it at once, because an advisory lock admits one at a time. */
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator'
import { Client } from 'pg'

export const migrationsFolder = fileURLToPath(new URL('../../../../../migrations', import.meta.url))
const advisoryLock = 7_233_485_001

export async function migrate(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [advisoryLock])
    // The schema is shared by all tenants.
    await client.query("select set_config('rivulet.tenant', '*', false)")
    await applyMigrations(drizzle(client), { migrationsFolder })
  } finally {
    await client.end()
  }
}
