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

/** The key of a worker may be of another tenant than the store that its turn fills. */
export class StoreFull extends RivuletError {
  readonly tenant: Tenant

  constructor(tenant: Tenant, message: string) {
    super('store_full', message)
    this.tenant = tenant
  }
}

type Row = typeof memoryValues.$inferSelect
type MemoryPlace = { tenant: Tenant; scope: string; key: string }
type MemoryChange = {
  /** The new value, from the one that is stored. */
  newValue: (stored: Json | undefined) => Json
  /** Whether the caller accepts the version that it replaces; 0 before the first. */
  accepts: (version: number) => boolean
  /** An id of this change, the same when it is repeated. */
  change: string | null
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
  db: Database | Transaction,
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

/**
 * Throws `precondition_failed` where the caller does not accept the version that is stored, unless the last change was this one: its caller repeats it because
 * it got no response. `isNew`: there was no value.
 */
export async function changeValue(
  tx: Transaction,
  place: MemoryPlace,
  { newValue, accepts, change, maxBytes }: MemoryChange,
): Promise<{ stored: StoredValue; isNew: boolean }> {
  const { tenant, scope, key } = place
  const version = await nextVersion(tx, place)
  const [before] = await tx.select().from(memoryValues).where(isAt(place))
  if (before && change !== null && before.change === change) return { stored: toStoredValue(before), isNew: false }
  if (!accepts(before?.version ?? 0)) throw otherVersion(before?.version)
  const text = JSON.stringify(newValue(before?.value))
  const size = Buffer.byteLength(text)
  if (size > maxStoreValueBytes)
    throw new RivuletError('value_too_large', `A stored value has at most ${maxStoreValueBytes} bytes as JSON; this one has ${size}`)
  const bytes = rowBytes + Buffer.byteLength(key) + size
  const row = { version, change, value: sql`${text}::json`, words: wordsOf(key, text), bytes, updatedAt: sql`now()` }
  const [stored] = await tx
    .insert(memoryValues)
    .values({ tenant, scope, key, ...row })
    .onConflictDoUpdate({ target: [memoryValues.tenant, memoryValues.scope, memoryValues.key], set: row })
    .returning()
  if (!stored) throw new RivuletError('internal', 'A stored value was not returned')
  await addBytes(tx, place, bytes - (before?.bytes ?? 0), maxBytes)
  return { stored: toStoredValue(stored), isNew: !before }
}

/** Returns whether there was a value. */
export async function removeValue(tx: Transaction, place: MemoryPlace, accepts: MemoryChange['accepts']): Promise<boolean> {
  await nextVersion(tx, place)
  const [before] = await tx.delete(memoryValues).where(isAt(place)).returning()
  if (!accepts(before?.version ?? 0)) throw otherVersion(before?.version)
  if (before) await addBytes(tx, place, -before.bytes)
  return before !== undefined
}

/** Leaves nothing with the name of the scope. The row of the tenant keeps how far the versions were. */
export async function clearScope(tx: Transaction, { tenant, scope }: Omit<MemoryPlace, 'key'>): Promise<void> {
  const version = await nextVersion(tx, { tenant, scope })
  await tx.delete(memoryValues).where(and(isOf(tenant, memoryValues.tenant), eq(memoryValues.scope, scope)))
  const [size] = await tx.delete(memorySizes).where(isSizeOf(tenant, scope)).returning()
  await addTo(tx, tenant, '', -(size?.bytes ?? 0))
  await tx
    .update(memorySizes)
    .set({ version: sql`greatest(${memorySizes.version}, ${version})` })
    .where(isSizeOf(tenant, ''))
}

/** Locks the scope until the transaction ends. A scope that was cleared does not begin again, because a caller may know a version of it. */
async function nextVersion(tx: Transaction, { tenant, scope }: Omit<MemoryPlace, 'key'>): Promise<number> {
  const [next] = await tx
    .insert(memorySizes)
    .values({ tenant, scope, version: 1 })
    .onConflictDoUpdate({ target: [memorySizes.tenant, memorySizes.scope], set: { version: sql`${memorySizes.version} + 1` } })
    .returning()
  if (next && next.version > 1) return next.version
  const [first] = await tx
    .update(memorySizes)
    .set({
      version: sql`1 + coalesce((select tenants.version from memory_sizes as tenants where tenants.tenant = ${tenant} and tenants.scope = ''), 0)`,
    })
    .where(isSizeOf(tenant, scope))
    .returning()
  return first?.version ?? 1
}

/** The rows of a scope are locked before that of its tenant, so no two changes wait for each other. */
async function addBytes(tx: Transaction, { tenant, scope }: MemoryPlace, difference: number, maxBytes = Number.POSITIVE_INFINITY) {
  if (difference === 0) return
  const ofScope = await addTo(tx, tenant, scope, difference)
  const ofTenant = await addTo(tx, tenant, '', difference)
  if (difference < 0) return
  if (ofScope > maxStoreScopeBytes)
    throw new StoreFull(tenant, `A scope of the store may have at most ${maxStoreScopeBytes} bytes: remove values of it`)
  if (ofTenant > maxBytes)
    throw new StoreFull(tenant, `The store of a tenant may have at most ${maxBytes} bytes (MAX_STORE_BYTES_PER_TENANT): remove values`)
}

async function addTo(tx: Transaction, tenant: Tenant, scope: string, bytes: number): Promise<number> {
  const [size] = await tx
    .insert(memorySizes)
    .values({ tenant, scope, bytes })
    .onConflictDoUpdate({ target: [memorySizes.tenant, memorySizes.scope], set: { bytes: sql`${memorySizes.bytes} + ${bytes}` } })
    .returning()
  return size?.bytes ?? 0
}

/** By the texts themselves: in JSON, a line break is a backslash and a letter. */
function wordsOf(key: string, text: string): SQL {
  return sql`to_tsvector('simple', ${key}) || json_to_tsvector('simple', ${text}::json, '["key", "string", "numeric", "boolean"]')`
}

function isSizeOf(tenant: Tenant, scope: string): SQL | undefined {
  return and(isOf(tenant, memorySizes.tenant), eq(memorySizes.scope, scope))
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
  const customer = row.customer === null ? null : `customer:${row.customer}`
  return { customer, agent: `agent:${row.agent}`, tenant: 'tenant' }
}
