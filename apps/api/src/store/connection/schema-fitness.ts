/**
 * Checks that the connections to a database are sessions, that its schema is the one of this program (all our migrations were applied, and no
 * others), and that row-level security holds for the connections of tenants.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import type { FastifyBaseLogger } from 'fastify'
import type { Pool } from 'pg'
import { sqlStateOf } from './database.ts'
import { migrate, migrationsFolder } from './migrate.ts'
import { whyRowsAreOpen } from './row-security.ts'
import { noteServer } from './server-identity.ts'
import { whySessionsAreUnfit } from './session-fitness.ts'

type Migration = { name: string; at: number; hash: string }
type Applied = Omit<Migration, 'name'>

type SchemaDemand = {
  pool: Pool
  /** Its connections see the rows of one tenant each. */
  tenantPool: Pool
  logger: FastifyBaseLogger
  /** The database to migrate first; null: another program migrates it. */
  migrateUrl: string | null
  allowNewer: boolean
}

/** Waits until Postgres can be asked. Throws a sentence that says what is wrong and what to do. */
export async function requireFitSchema(
  { pool, tenantPool, logger, migrateUrl, allowNewer }: SchemaDemand,
  signal: AbortSignal,
): Promise<void> {
  let unfit: string | null | undefined
  while (unfit === undefined && !signal.aborted) {
    try {
      unfit = await whySessionsAreUnfit(pool)
      if (unfit) break
      if (migrateUrl) await migrate(migrateUrl, { onBlocked: reason => logger.warn(reason) })
      // The connections are older than the migrations.
      await noteServer(pool)
      unfit = (await whySchemaIsUnfit(pool, allowNewer)) ?? (await whyRowsAreOpen(tenantPool))
    } catch (error) {
      logger.warn({ err: error }, 'could not prepare the schema; retrying')
      await sleep(1_000, undefined, { signal }).catch(() => {})
    }
  }
  if (unfit) throw new Error(unfit)
}

/** Throws where Postgres could not be asked. */
async function whySchemaIsUnfit(pool: Pool, allowNewer: boolean): Promise<string | null> {
  const applied = await appliedMigrations(pool)
  return applied ? judge(ownMigrations(), applied, allowNewer) : forbidden
}

const forbidden =
  'The user of DATABASE_URL may not see which migrations were applied: grant it USAGE on the schema drizzle and SELECT on drizzle.__drizzle_migrations'

export function judge(own: readonly Migration[], applied: readonly Applied[], allowNewer: boolean): string | null {
  const newest = own.at(-1)?.at ?? 0
  const foreign = applied.filter(({ at, hash }) => !own.some(known => known.at === at && known.hash === hash))
  if (foreign.some(({ at }) => at <= newest))
    return 'The database was migrated by another program than this one: check DATABASE_URL, or deploy the version that it belongs to'
  const missing = own.filter(({ at }) => !applied.some(known => known.at === at))
  if (missing.length > 0)
    return `The schema of the database is older than this program (${missing.map(({ name }) => name).join(', ')}): run \`rivulet migrate\`, or start with MIGRATE=on`
  if (foreign.length > 0 && !allowNewer)
    return 'The schema of the database is newer than this program: deploy the version that migrated it, or restore the schema from before; where that version has only added to it, ALLOW_NEWER_SCHEMA=on lets this one start'
  return null
}

function ownMigrations(): Migration[] {
  const journal: { entries: { tag: string }[] } = JSON.parse(readFileSync(`${migrationsFolder}/meta/_journal.json`, 'utf8'))
  const files = readMigrationFiles({ migrationsFolder })
  return files.map(({ folderMillis, hash }, i) => ({ name: journal.entries[i]?.tag ?? '', at: folderMillis, hash }))
}

/** Null: we may not know. */
async function appliedMigrations(pool: Pool): Promise<Applied[] | null> {
  try {
    const { rows } = await pool.query<{ hash: string; at: string }>('select hash, created_at as at from drizzle.__drizzle_migrations')
    return rows.map(({ hash, at }) => ({ hash, at: Number(at) }))
  } catch (error) {
    // Neither schema nor table: nothing was ever applied.
    const state = sqlStateOf(error)
    if (state === '42P01' || state === '3F000') return []
    if (state === '42501') return null
    throw error
  }
}
