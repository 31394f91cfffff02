/**
 * Migrates a database to this version's schema. Any number of processes may run it at once, because an advisory lock admits one at a time.
 *
 * A migration that waits for a table blocks every statement behind it on that table. So it waits for a second at most, and then starts again. Indexes of
 * large tables are built after the migrations, outside of a transaction, so that reads and writes go on meanwhile.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator'
import { Client, escapeIdentifier } from 'pg'
import { sqlStateOf } from './database-errors.ts'

export const migrationsFolder = fileURLToPath(new URL('../../../../../migrations', import.meta.url))
const advisoryLock = 7_233_485_001
const lockTimeoutMs = 1_000
const turnMs = 100
/** A lock was not granted in time, or not at all because of a deadlock. */
const blockedStates = ['55P03', '40P01']

export type MigrateOptions = {
  folder?: string
  /** Another session holds a lock on a table, so the migration starts again. */
  onBlocked?: (reason: string) => void
}

export async function migrate(url: string, { folder = migrationsFolder, onBlocked = () => {} }: MigrateOptions = {}): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    await lock(client)
    // The schema is shared by all tenants.
    await client.query("select set_config('rivulet.tenant', '*', false)")
    // After the advisory lock, which may take as long as the migrations of another process.
    await client.query(`set lock_timeout = ${lockTimeoutMs}`)
    await apply(client, folder, onBlocked)
    await buildIndexes(client, join(folder, 'concurrent'))
  } finally {
    await client.end()
  }
}

/** It asks again and again, because a statement that waits for the lock would be waited for by the index that the holder of the lock builds. */
async function lock(client: Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ isOurs: boolean }>('select pg_try_advisory_lock($1) as "isOurs"', [advisoryLock])
    if (rows[0]?.isOurs) return
    await sleep(turnMs)
  }
}

async function apply(client: Client, folder: string, onBlocked: (reason: string) => void): Promise<void> {
  for (;;) {
    try {
      return await applyMigrations(drizzle(client), { migrationsFolder: folder })
    } catch (error) {
      if (!blockedStates.includes(sqlStateOf(error) ?? '')) throw error
      onBlocked('a migration waits for a table that another session has locked (see pg_stat_activity); retrying')
      await sleep(lockTimeoutMs)
    }
  }
}

/** Each file has the name of its index. An index that was not completed, because its process died, is dropped and built again. */
async function buildIndexes(client: Client, folder: string): Promise<void> {
  const files = existsSync(folder) ? readdirSync(folder).sort() : []
  // It waits for the transactions that began before it. Nothing but vacuum and other changes of the schema waits behind it.
  await client.query('set lock_timeout = 0')
  for (const file of files) {
    const name = escapeIdentifier(file.replace(/\.sql$/, ''))
    const { rows } = await client.query<{ isValid: boolean | null }>(
      'select (select indisvalid from pg_index where indexrelid = to_regclass($1)) as "isValid"',
      [name],
    )
    const isValid = rows[0]?.isValid
    if (isValid) continue
    if (isValid === false) await client.query(`drop index concurrently ${name}`)
    await client.query(readFileSync(join(folder, file), 'utf8'))
  }
}
