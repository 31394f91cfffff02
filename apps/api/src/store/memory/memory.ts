/**
 * The values that agents and callers keep above tasks, by scope and key. A change of a scope waits for the one before it, so limits and versions are exact.
 * No change of a task depends on these rows.
 */
import type { ListStore, StoredValue, TurnScope } from '@rivulet/contract/store'
import { type Json, maxStoreScopeBytes, maxStoreValueBytes, RivuletError, type TaskId } from '@rivulet/protocol'
import { and, asc, eq, gt, inArray, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { isOf, type Tenant, taskNotFound } from '../connection/tenant.ts'
import type { Page } from '../reads/pages.ts'
import { memorySizes, memoryValues, tasks } from '../schema.ts'

type Row = typeof memoryValues.$inferSelect
export type MemoryPlace = { tenant: Tenant; scope: string; key: string }
export type MemoryChange = {
  /** The new value, from the one that is stored. */
  newValue: (stored: Json | undefined) => Json
  /** Whether the caller accepts the version that it replaces; 0 before the first. */
  accepts: (version: number) => boolean
  /** The limit of all scopes of the tenant. */
  maxBytes: number
}

/** A row takes more than its value, so many small values count, too. */
const rowBytes = 64

export async function findValue(db: Database | Transaction, place: MemoryPlace): Promise<StoredValue | null> {
  const [row] = await db.select().from(memoryValues).where(isAt(place))
  return row ? toStoredValue(row) : null
}

/** In the order of the keys, by their bytes. A page ends before its values exceed `maxBytes`, and has at least one. */
export async function listValues(
  db: Database,
  { tenant, scope }: Omit<MemoryPlace, 'key'>,
  { prefix, q, cursor, limit }: ListStore,
  maxBytes: number,
): Promise<Page<StoredValue, string>> {
  const isOfScope = and(isOf(tenant, memoryValues.tenant), eq(memoryValues.scope, scope))
  const found = await db
    .select({ key: memoryValues.key, bytes: memoryValues.bytes })
    .from(memoryValues)
    .where(
      and(
        isOfScope,
        prefix === undefined ? undefined : sql`starts_with(${memoryValues.key}, ${prefix})`,
        q === undefined ? undefined : hasWords(q),
        cursor === undefined ? undefined : gt(memoryValues.key, cursor),
      ),
    )
    .orderBy(asc(memoryValues.key))
    .limit(limit + 1)
  const keys: string[] = []
  let left = maxBytes
  for (const { key, bytes } of found.slice(0, limit)) {
    left -= bytes
    if (left < 0 && keys.length > 0) break
    keys.push(key)
  }
  const rows = await db
    .select()
    .from(memoryValues)
    .where(and(isOfScope, inArray(memoryValues.key, keys)))
    .orderBy(asc(memoryValues.key))
  return { data: rows.map(toStoredValue), nextCursor: keys.length < found.length ? (keys.at(-1) ?? null) : null }
}

/** Throws `precondition_failed` where the caller does not accept the version that is stored. `isNew`: there was no value. */
export async function changeValue(
  tx: Transaction,
  place: MemoryPlace,
  { newValue, accepts, maxBytes }: MemoryChange,
): Promise<{ stored: StoredValue; isNew: boolean }> {
  const { tenant, scope, key } = place
  const version = await nextVersion(tx, place)
  const [before] = await tx.select().from(memoryValues).where(isAt(place))
  const text = JSON.stringify(newValue(before?.value))
  if (!accepts(before?.version ?? 0)) {
    // The caller repeats a change whose response it did not get (RFC 9110, 13.1.1).
    if (before && !accepts(0) && text === JSON.stringify(before.value)) return { stored: toStoredValue(before), isNew: false }
    throw otherVersion(before?.version)
  }
  const size = Buffer.byteLength(text)
  if (size > maxStoreValueBytes)
    throw new RivuletError('value_too_large', `A stored value has at most ${maxStoreValueBytes} bytes as JSON; this one has ${size}`)
  const bytes = rowBytes + Buffer.byteLength(key) + size
  const change = {
    version,
    value: sql`${text}::json`,
    words: sql`to_tsvector('simple', ${`${key} ${text}`})`,
    bytes,
    updatedAt: sql`now()`,
  }
  const [row] = await tx
    .insert(memoryValues)
    .values({ tenant, scope, key, ...change })
    .onConflictDoUpdate({ target: [memoryValues.tenant, memoryValues.scope, memoryValues.key], set: change })
    .returning()
  if (!row) throw new RivuletError('internal', 'A stored value was not returned')
  await count(tx, place, bytes - (before?.bytes ?? 0), maxBytes)
  return { stored: toStoredValue(row), isNew: !before }
}

/** Returns whether there was a value. */
export async function removeValue(tx: Transaction, place: MemoryPlace, accepts: MemoryChange['accepts']): Promise<boolean> {
  await nextVersion(tx, place)
  const [before] = await tx.delete(memoryValues).where(isAt(place)).returning()
  if (before && !accepts(before.version)) throw otherVersion(before.version)
  if (before) await count(tx, place, -before.bytes)
  return before !== undefined
}

export async function clearScope(tx: Transaction, { tenant, scope }: Omit<MemoryPlace, 'key'>): Promise<void> {
  const [size] = await tx
    .delete(memorySizes)
    .where(and(isOf(tenant, memorySizes.tenant), eq(memorySizes.scope, scope)))
    .returning()
  await tx.delete(memoryValues).where(and(isOf(tenant, memoryValues.tenant), eq(memoryValues.scope, scope)))
  if (size) await grow(tx, { tenant, scope: '' }, -size.bytes)
}

/** Locks the scope until the transaction ends. */
async function nextVersion(tx: Transaction, { tenant, scope }: MemoryPlace): Promise<number> {
  const [row] = await tx
    .insert(memorySizes)
    .values({ tenant, scope, version: 1 })
    .onConflictDoUpdate({ target: [memorySizes.tenant, memorySizes.scope], set: { version: sql`${memorySizes.version} + 1` } })
    .returning()
  return row?.version ?? 1
}

async function count(
  tx: Transaction,
  { tenant, scope }: MemoryPlace,
  difference: number,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<void> {
  const ofScope = await grow(tx, { tenant, scope }, difference)
  if (difference > 0 && ofScope > maxStoreScopeBytes)
    throw new RivuletError('quota_exceeded', `A scope of the store may have at most ${maxStoreScopeBytes} bytes`)
  const ofTenant = await grow(tx, { tenant, scope: '' }, difference)
  if (difference > 0 && ofTenant > maxBytes)
    throw new RivuletError('quota_exceeded', `The store of a tenant may have at most ${maxBytes} bytes (MAX_STORE_BYTES_PER_TENANT)`)
}

async function grow(tx: Transaction, { tenant, scope }: Omit<MemoryPlace, 'key'>, difference: number): Promise<number> {
  const [row] = await tx
    .insert(memorySizes)
    .values({ tenant, scope, bytes: difference })
    .onConflictDoUpdate({ target: [memorySizes.tenant, memorySizes.scope], set: { bytes: sql`${memorySizes.bytes} + ${difference}` } })
    .returning()
  return row?.bytes ?? 0
}

function hasWords(q: string): SQL {
  return sql`(${memoryValues.words} @@ websearch_to_tsquery('simple', ${q}) or position(${q} in ${memoryValues.key}) > 0)`
}

function isAt({ tenant, scope, key }: MemoryPlace): SQL | undefined {
  return and(isOf(tenant, memoryValues.tenant), eq(memoryValues.scope, scope), eq(memoryValues.key, key))
}

function otherVersion(version = 0): RivuletError {
  return new RivuletError('precondition_failed', version === 0 ? 'There is no value under this key' : `The value has version ${version}`)
}

function toStoredValue({ scope, key, value, version, updatedAt }: Row): StoredValue {
  return { scope, key, value, version, updatedAt: updatedAt.toISOString() }
}

/** The scopes that the turns of a task use. */
export async function scopesOf(db: Database, task: TaskId): Promise<Record<TurnScope, string | null>> {
  const [row] = await db.select({ agent: tasks.agent, customer: tasks.concurrencyKey }).from(tasks).where(eq(tasks.id, task))
  if (!row) throw taskNotFound()
  return { customer: row.customer === null ? null : `customer:${row.customer}`, agent: `agent:${row.agent}`, tenant: 'tenant' }
}
