/** Keys, as they are stored: never the secret, only its digest. */
import { and, asc, eq, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import type { Scope } from '../access/principal.ts'
import type { Database } from './database.ts'
import { keys } from './schema.ts'

export type KeyRow = typeof keys.$inferSelect

export type NewKey = { id: string; digest: string; tenant: string; name: string; scopes: Scope[]; expiresAt: Date | null }

export async function insertKey(db: Database, key: NewKey): Promise<KeyRow> {
  const [row] = await db.insert(keys).values(key).returning()
  if (!row) throw new Error('The key was not inserted')
  return row
}

export async function findKey(db: Database, id: string): Promise<KeyRow | undefined> {
  const [row] = await db.select().from(keys).where(eq(keys.id, id))
  return row
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

const isLive = and(isNull(keys.revokedAt), or(isNull(keys.expiresAt), gt(keys.expiresAt, sql`now()`)))
