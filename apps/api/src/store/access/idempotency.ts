/** Responses under an Idempotency-Key, kept for a day: the same request gets the same response, and runs once. */
import { type Json, RivuletError, type TaskId } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import { and, eq, lt, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { sqlStateOf } from '../connection/database.ts'
import { askTwice } from '../connection/database-errors.ts'
import { msAgo } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { idempotencyKeys } from '../schema.ts'
import { taskTransaction } from '../tasks/task-line.ts'

export type StoredResponse = { status: number; body: Json }
export type OnceResponse = StoredResponse & { replayed: boolean }
/** Each tenant has its own, and in it each caller: `key` begins with the caller's namespace. */
export type IdempotencyKey = { tenant: Tenant; key: string; fingerprint: string }

/**
 * Runs `work` in a transaction that also remembers its answer. A second request under the same key waits for the first one's commit; where
 * the wait is too long, the second request gets `in_flight`.
 *
 * @param task whose row the work holds
 */
export async function runOnce(
  db: Database,
  request: IdempotencyKey | null,
  work: (tx: Transaction) => Promise<StoredResponse>,
  task: TaskId | null = null,
): Promise<OnceResponse> {
  // Under a key, a second try finds what the first has committed.
  return request ? askTwice(run) : run()

  function run(): Promise<OnceResponse> {
    return task === null ? db.transaction(carryOut) : taskTransaction(db, task, carryOut)
  }

  async function carryOut(tx: Transaction): Promise<OnceResponse> {
    const earlier = request && (await reserve(tx, request))
    if (earlier) return { ...earlier, replayed: true }
    const response = await work(tx)
    if (request) await tx.update(idempotencyKeys).set(response).where(isKey(request))
    if (failpoint) await failpoint('accepting')
    return { ...response, replayed: false }
  }
}

/** The stored response, without reserving the key: for work that cannot be part of one transaction and may be done twice. */
export async function findResponse(db: Database, request: IdempotencyKey): Promise<OnceResponse | null> {
  const [earlier] = await db
    .select()
    .from(idempotencyKeys)
    .where(and(isKey(request), sql`not (${sql.raw(isFree)})`))
  return earlier ? { ...responseOf(earlier, request.fingerprint), replayed: true } : null
}

/** What a request under this key has got, whatever it asked for; null while there is nothing. */
export async function keptResponse(db: Database, key: Pick<IdempotencyKey, 'tenant' | 'key'>): Promise<Json> {
  const [earlier] = await db.select({ body: idempotencyKeys.body }).from(idempotencyKeys).where(isKey(key))
  return earlier?.body ?? null
}

/** The stored response, or null when this request is the first under its key. */
async function reserve(tx: Transaction, request: IdempotencyKey): Promise<StoredResponse | null> {
  await tx.delete(idempotencyKeys).where(and(isKey(request), sql.raw(isFree)))
  const inserted = await insertKey(tx, request)
  if (inserted) return null
  const [earlier] = await tx.select().from(idempotencyKeys).where(isKey(request))
  if (!earlier) throw inFlight()
  return responseOf(earlier, request.fingerprint)
}

function responseOf(earlier: typeof idempotencyKeys.$inferSelect, fingerprint: string): StoredResponse {
  if (earlier.status === null) throw inFlight()
  if (earlier.fingerprint !== fingerprint)
    throw new RivuletError('idempotency_key_reused', 'This Idempotency-Key was used for another request')
  return { status: earlier.status, body: earlier.body ?? null }
}

async function insertKey(tx: Transaction, row: IdempotencyKey): Promise<boolean> {
  try {
    const inserted = await tx.insert(idempotencyKeys).values(row).onConflictDoNothing().returning({ key: idempotencyKeys.key })
    return inserted.length > 0
  } catch (error) {
    if (sqlStateOf(error) === '55P03') throw inFlight()
    throw error
  }
}

/** Responses contain request data, so they are not kept longer than tasks. */
export async function forgetOldKeys(db: Database, keptMs: number | null): Promise<void> {
  const longAgo = keptMs === null ? sql.raw(dayAgo) : sql`greatest(${sql.raw(dayAgo)}, ${msAgo(keptMs)})`
  await db.delete(idempotencyKeys).where(lt(idempotencyKeys.createdAt, longAgo))
}

function isKey({ tenant, key }: Pick<IdempotencyKey, 'tenant' | 'key'>): SQL | undefined {
  return and(isOf(tenant, idempotencyKeys.tenant), eq(idempotencyKeys.key, key))
}

const dayAgo = `now() - interval '24 hours'`

/** In SQL about `idempotency_keys`: the response under a key is a day old, so the key may be used for another request. */
export const isFree = `idempotency_keys.created_at < ${dayAgo}`

export function inFlight(): RivuletError {
  return new RivuletError('in_flight', 'The first request with this Idempotency-Key is still running')
}
