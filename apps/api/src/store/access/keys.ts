/** The rows of keys: never the secret, only its digest. */

import type { ListKeys } from '@rivulet/contract/keys'
import type { Scope } from '@rivulet/contract/scopes'
import { and, asc, eq, getTableColumns, gt, inArray, isNull, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow, msUntil } from '../connection/moments.ts'
import { lockQuota } from '../connection/quota-lock.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { keys } from '../schema.ts'
import type { AuditedChange, Auditor } from './audit.ts'

export type KeyRow = typeof keys.$inferSelect

/** Both by the clock of Postgres. `expiresInMs` is null where the key has no end. */
export type FoundKey = KeyRow & { isLive: boolean; expiresInMs: number | null }

type KeyDigest = Pick<KeyRow, 'id' | 'digest'>

type KeyTerms = {
  tenant: string
  name: string
  scopes: Scope[]
  expiresInMs: number | null
  allTenants: boolean
  agents: string[] | null
}

/** Live keys of one tenant; null: no limit. */
type MaxKeys = number | null

type Rotation = { at: 'rotated'; key: KeyRow; replaced: KeyRow } | { at: 'unknown' | 'ended' | 'replaced' | 'too many' }

export function insertKey(
  db: Database,
  digest: KeyDigest,
  terms: KeyTerms,
  maxKeys: MaxKeys,
  audit: Auditor,
): Promise<KeyRow | 'too many'> {
  return db.transaction(async tx => {
    if (!(await hasRoom(tx, terms.tenant, maxKeys))) return 'too many'
    const { expiresInMs, ...values } = terms
    const expiresAt = expiresInMs === null ? null : msFromNow(expiresInMs)
    const created = await tx
      .insert(keys)
      .values({ ...digest, ...values, expiresAt })
      .returning()
    const row = only(created)
    await note(tx, audit, 'key.created', row, termsOf(row))
    return row
  })
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

/** A page of at most `limit` rows, oldest first, after the row of the cursor. Null if the manager has no key with the cursor's id. */
export async function listKeys(db: Database, manager: Tenant, { tenant, limit, cursor }: ListKeys): Promise<KeyRow[] | null> {
  if (cursor !== undefined && !(await findManagedKey(db, manager, cursor))) return null
  const isLater = sql`(${keys.createdAt}, ${keys.id}) > (select created_at, id from ${keys} as cursor_key where cursor_key.id = ${cursor})`
  return db
    .select()
    .from(keys)
    .where(
      and(isManagedBy(manager), tenant === undefined ? undefined : eq(keys.tenant, tenant), cursor === undefined ? undefined : isLater),
    )
    .orderBy(asc(keys.createdAt), asc(keys.id))
    .limit(limit)
}

/** The key as it is now; one that was revoked before stays as it was. */
export async function revokeKey(db: Database, manager: Tenant, id: string, audit: Auditor): Promise<KeyRow | undefined> {
  return db.transaction(async tx => {
    const [revoked] = await tx
      .update(keys)
      .set({ revokedAt: sql`now()` })
      .where(and(eq(keys.id, id), isManagedBy(manager), isNull(keys.revokedAt)))
      .returning()
    if (!revoked) return findManagedKey(tx, manager, id)
    await note(tx, audit, 'key.revoked', revoked)
    return revoked
  })
}

/**
 * Creates a key with the terms of another one, and ends that one after the overlap if it does not expire before. The new key is valid for as long
 * as the old one was when it was created. A key is rotated once, because its expiry is then the end of the overlap and no longer one of its terms.
 */
export function rotateKey(
  db: Database,
  manager: Tenant,
  id: string,
  { overlapMs, maxKeys, ...digest }: KeyDigest & { overlapMs: number; maxKeys: MaxKeys },
  audit: Auditor,
): Promise<Rotation> {
  return db.transaction(async tx => {
    const [old] = await tx
      .select({ ...getTableColumns(keys), isLive: sql<boolean>`${isLive}` })
      .from(keys)
      .where(and(eq(keys.id, id), isManagedBy(manager)))
      .for('update')
    if (!old) return { at: 'unknown' }
    if (old.replacedBy !== null) return { at: 'replaced' }
    if (!old.isLive) return { at: 'ended' }
    const { tenant, name, scopes, allTenants, agents } = old
    // Both keys are live during the overlap, so a rotation needs room like a new key.
    if (!(await hasRoom(tx, tenant, maxKeys))) return { at: 'too many' }
    const expiresAt = sql`(select now() + (expires_at - created_at) from ${keys} as old_key where old_key.id = ${id})`
    const created = await tx
      .insert(keys)
      .values({ ...digest, tenant, name, scopes, allTenants, agents, expiresAt })
      .returning()
    const replaced = await tx
      .update(keys)
      .set({ replacedBy: digest.id, expiresAt: sql`least(${keys.expiresAt}, ${msFromNow(overlapMs)})` })
      .where(eq(keys.id, id))
      .returning()
    await note(tx, audit, 'key.rotated', old, { ...termsOf(only(created)), replacedBy: digest.id })
    return { at: 'rotated', key: only(created), replaced: only(replaced) }
  })
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

/** For a key that was created with an earlier pepper. Changes nothing if another process has changed the digest. */
export async function changeDigest(db: Database, id: string, { from, to }: { from: string; to: string }): Promise<void> {
  await db
    .update(keys)
    .set({ digest: to })
    .where(and(eq(keys.id, id), eq(keys.digest, from)))
}

/** Neither revoked nor expired. */
const isLive = and(isNull(keys.revokedAt), or(isNull(keys.expiresAt), gt(keys.expiresAt, sql`now()`)))

async function hasRoom(tx: Pick<Database, 'execute' | 'select'>, tenant: string, maxKeys: MaxKeys): Promise<boolean> {
  if (maxKeys === null) return true
  await lockQuota(tx, tenant, 'keys')
  const found = await tx
    .select({ id: keys.id })
    .from(keys)
    .where(and(eq(keys.tenant, tenant), isLive))
    .limit(maxKeys)
  return found.length < maxKeys
}

async function findManagedKey(db: Pick<Database, 'select'>, manager: Tenant, id: string): Promise<KeyRow | undefined> {
  const [row] = await db
    .select()
    .from(keys)
    .where(and(eq(keys.id, id), isManagedBy(manager)))
  return row
}

/** A tenant manages its own keys. A key for all tenants is the installation's, because its end would affect other tenants. */
function isManagedBy(manager: Tenant): SQL | undefined {
  return manager === everyTenant ? undefined : and(isOf(manager, keys.tenant), eq(keys.allTenants, false))
}

/** A tenant does not see the end of a key for all tenants. */
function note(tx: Transaction, audit: Auditor, action: AuditedChange['action'], key: KeyRow, details: AuditedChange['details'] = {}) {
  return audit(tx, key.allTenants ? everyTenant : key.tenant, { action, target: key.id, details })
}

function termsOf({ scopes, allTenants, agents, expiresAt }: KeyRow): NonNullable<AuditedChange['details']> {
  return { scopes, ...(allTenants && { allTenants }), ...(agents && { agents }), ...(expiresAt && { expiresAt: expiresAt.toISOString() }) }
}

function only(rows: KeyRow[]): KeyRow {
  const [row] = rows
  if (!row) throw new Error('Postgres returned no row for the key')
  return row
}
