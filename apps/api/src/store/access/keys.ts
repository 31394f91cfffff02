/** The rows of keys: never the secret, only its digest. */
import { and, asc, eq, getTableColumns, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { msUntil } from '../connection/moments.ts'
import { keys } from '../schema.ts'
import type { Scope } from './scopes.ts'

export type KeyRow = typeof keys.$inferSelect

/** Both by the clock of Postgres. `expiresInMs` is null where the key has no end. */
export type FoundKey = KeyRow & { isLive: boolean; expiresInMs: number | null }

export type NewKey = {
  id: string
  digest: string
  tenant: string
  name: string
  scopes: Scope[]
  expiresAt: Date | null
  allTenants: boolean
  agents: string[] | null
}

export async function insertKey(db: Database, key: NewKey): Promise<KeyRow> {
  const [row] = await db.insert(keys).values(key).returning()
  if (!row) throw new Error('The key was not inserted')
  return row
}

async function findKey(db: Database, id: string): Promise<FoundKey | undefined> {
  const [row] = await findKeys(db, [id])
  return row
}

/** In the order of their ids. */
export async function findKeys(db: Database, ids: readonly string[]): Promise<(FoundKey | undefined)[]> {
  const expiresInMs = sql<number | null>`${msUntil(keys.expiresAt)}`
  const rows = await db
    .select({ ...getTableColumns(keys), isLive: sql<boolean>`${isLive}`, expiresInMs })
    .from(keys)
    .where(inArray(keys.id, [...ids]))
  const found = new Map(rows.map(row => [row.id, row]))
  return ids.map(id => found.get(id))
}

export async function listKeys(db: Database): Promise<KeyRow[]> {
  return db.select().from(keys).orderBy(asc(keys.createdAt), asc(keys.id))
}

/** The key as it is now; one that was revoked before stays as it was. */
export async function revokeKey(db: Database, id: string): Promise<KeyRow | undefined> {
  await db
    .update(keys)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(keys.id, id), isNull(keys.revokedAt)))
  return findKey(db, id)
}

export async function liveKeys(db: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .select({ id: keys.id })
    .from(keys)
    .where(and(inArray(keys.id, [...ids]), isLive))
  return rows.map(({ id }) => id)
}

export async function hasLiveKey(db: Database): Promise<boolean> {
  return (await db.select({ id: keys.id }).from(keys).where(isLive).limit(1)).length > 0
}

/** To the minute: not every request is worth a write. */
export async function noteKeyUse(db: Database, id: string): Promise<void> {
  const isOld = or(isNull(keys.lastUsedAt), lt(keys.lastUsedAt, sql`now() - interval '1 minute'`))
  await db
    .update(keys)
    .set({ lastUsedAt: sql`now()` })
    .where(and(eq(keys.id, id), isOld))
}

/** Neither revoked nor expired. */
const isLive = and(isNull(keys.revokedAt), or(isNull(keys.expiresAt), gt(keys.expiresAt, sql`now()`)))
