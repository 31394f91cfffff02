/**
 * Deliveries: entries of the feed on their way to an address.
 *
 * They are created in the transaction that moves the reader's place in the feed, so each entry becomes one delivery for each webhook, whichever process
 * reads it. A process claims a delivery by moving its due time, so that another process repeats the attempt if this one dies: at least once, with one id.
 */
import type { Delivery, ListDeliveries, OnEnd } from '@rivulet/contract/webhooks'
import { epochOf, formatCursor, seqOf } from '@rivulet/protocol'
import { and, desc, eq, inArray, isNotNull, lt, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import { v7 as uuidv7 } from 'uuid'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo, msFromNow } from '../connection/moments.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { deliveries, feed, feedReaders, tasks, webhooks } from '../schema.ts'
import { deliveryTarget } from './delivery-target.ts'
import { horizon, readFeed, type TenantEntry } from './read-feed.ts'

type DeliveryRow = typeof deliveries.$inferSelect
/** With the address and the secrets to sign with, as they are now. */
export type DueDelivery = Pick<DeliveryRow, 'id' | 'tenant' | 'webhook' | 'payload' | 'attempts'> & { url: string; secrets: string[] }

/** A tenant's host and port. */
export type TenantTarget = { tenant: Tenant; target: string }

const reader = 'webhooks'
/** An attempt ends by then, or its process is dead. */
const attemptMs = 60_000
/** How long deliveries can be read after their creation. */
const keptMs = 7 * 24 * 3_600_000

/** Whether the feed has entries to deliver, or a delivery is due: one statement, because every process asks this twice a second. */
export async function hasDeliveryWork(db: Database): Promise<boolean> {
  const [xid, seq] = [1, 2].map(part => sql`split_part(${feedReaders.place}, '-', ${part})::bigint`)
  const { rows } = await db.execute<{ hasWork: boolean }>(sql`
    select exists (select from ${feed} where (${feed.xid}, ${feed.seq}) > (${xid}, ${seq}) and ${feed.xid} < ${horizon})
      or exists (select from ${deliveries} where ${isDue}) as "hasWork"
    from ${feedReaders} where ${feedReaders.name} = ${reader}
  `)
  return rows[0]?.hasWork ?? false
}

/** Turns the next entries of the feed into deliveries. False when there is nothing more to do, or another process does it. */
export async function createDeliveries(db: Database, limit: number, payloadOf: (entry: TenantEntry) => string): Promise<boolean> {
  return db.transaction(async tx => {
    const [held] = await tx.select().from(feedReaders).where(eq(feedReaders.name, reader)).for('update', { skipLocked: true })
    if (!held) return false
    const { entries, next, isFull } = await readFeed(tx, everyTenant, { after: held.place, limit })
    const created = [...(await forWebhooks(tx, entries)), ...(await forTasks(tx, entries))]
    const rows = created.map(({ entry, ...row }) => ({
      ...{ id: uuidv7(), tenant: entry.tenant, task: entry.task, type: entry.type, payload: payloadOf(entry) },
      ...{ ...row, nextAt: sql`now()` },
    }))
    if (rows.length > 0) await tx.insert(deliveries).values(rows)
    // Without entries nothing is written: the write would be a transaction of its own, and move `next` again.
    if (entries.length > 0) await tx.update(feedReaders).set({ place: next }).where(eq(feedReaders.name, reader))
    return isFull
  })
}

type Wanted = { entry: TenantEntry; webhook?: string; onEnd?: OnEnd; target: string }

async function forWebhooks(tx: Transaction, entries: readonly TenantEntry[]): Promise<Wanted[]> {
  const tenants = [...new Set(entries.map(({ tenant }) => tenant))]
  if (tenants.length === 0) return []
  const active = await tx
    .select()
    .from(webhooks)
    .where(and(inArray(webhooks.tenant, tenants), eq(webhooks.status, 'active')))
  return entries.flatMap(entry =>
    active
      .filter(
        ({ tenant, events, agent }) => tenant === entry.tenant && events.includes(entry.type) && (agent ?? entry.agent) === entry.agent,
      )
      .map(({ id, url }) => ({ entry, webhook: id, target: deliveryTarget(url) })),
  )
}

/** Entries from before the migration that added `feed.onEnd` have it only in their task. */
async function forTasks(tx: Transaction, entries: readonly TenantEntry[]): Promise<Wanted[]> {
  const ended = new Map(entries.filter(({ type }) => type === 'turn.finished').map(entry => [entry.seq, entry]))
  if (ended.size === 0) return []
  const [xids, seqs] = [epochOf, seqOf].map(half => sql.param(Array.from(ended.keys(), half)))
  const isRead = sql`(${feed.xid}, ${feed.seq}) in (select * from unnest(${xids}::bigint[], ${seqs}::bigint[]))`
  const rows = await tx
    .select({ xid: feed.xid, seq: feed.seq, onEnd: sql<OnEnd>`coalesce(${feed.onEnd}, ${tasks.onEnd})` })
    .from(feed)
    .leftJoin(tasks, eq(tasks.id, feed.task))
    .where(and(isRead, sql`coalesce(${feed.onEnd}, ${tasks.onEnd}) is not null`))
    .orderBy(feed.xid, feed.seq)
  if (rows.length > 0)
    await tx
      .update(feed)
      .set({ onEnd: null })
      .where(and(isRead, isNotNull(feed.onEnd)))
  return rows.flatMap(({ xid, seq, onEnd }) => {
    const entry = ended.get(formatCursor(xid, seq))
    return entry ? [{ entry, onEnd, target: deliveryTarget(onEnd.url) }] : []
  })
}

/** Those of a webhook that is off wait until it is on again. */
const isDue = sql`${deliveries.status} = 'pending' and ${deliveries.nextAt} < now() and (${deliveries.webhook} is null
  or exists (select from ${webhooks} where ${webhooks.id} = ${deliveries.webhook} and ${webhooks.status} = 'active'))`

/** @param busy tenants, and their targets, that get no further delivery now, so that an address that hangs holds up no other. */
export async function claimDeliveries(
  db: Database,
  limit: number,
  busy: { tenants: readonly Tenant[]; targets: readonly TenantTarget[] },
): Promise<DueDelivery[]> {
  const isOfFreeTenant = busy.tenants.length > 0 ? notInArray(deliveries.tenant, [...busy.tenants]) : undefined
  const isBusy = busy.targets.map(({ tenant, target }) => and(eq(deliveries.tenant, tenant), eq(deliveries.target, target)))
  const isForFreeTarget = isBusy.length > 0 ? sql`(${or(...isBusy)}) is not true` : undefined
  const due = db
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(and(isDue, isOfFreeTenant, isForFreeTarget))
    .orderBy(deliveries.nextAt)
    .limit(limit)
    .for('update', { skipLocked: true })
  const claimed = await db
    .update(deliveries)
    .set({ attempts: sql`${deliveries.attempts} + 1`, nextAt: msFromNow(attemptMs) })
    .where(inArray(deliveries.id, due))
    .returning()
  const ids = claimed.flatMap(({ webhook }) => webhook ?? [])
  const hooks =
    ids.length > 0
      ? await db
          .select({ ...addressColumns })
          .from(webhooks)
          .where(inArray(webhooks.id, ids))
      : []
  const known = new Map(hooks.map(hook => [hook.id, hook]))
  return claimed.flatMap(({ onEnd, ...row }) => {
    const { id, tenant, webhook, payload, attempts } = row
    const about = { id, tenant, webhook, payload, attempts }
    const hook = webhook === null ? undefined : known.get(webhook)
    if (hook) return [{ ...about, url: hook.url, secrets: [hook.secret, ...(hook.oldSecret ? [hook.oldSecret] : [])] }]
    return onEnd ? [{ ...about, url: onEnd.url, secrets: onEnd.secret ? [onEnd.secret] : [] }] : []
  })
}

const addressColumns = {
  id: webhooks.id,
  url: webhooks.url,
  secret: webhooks.secret,
  oldSecret: sql<string | null>`case when ${webhooks.oldSecretUntil} > now() then ${webhooks.oldSecret} end`,
}

/** The result of one attempt. `retryInMs` null: there is no further attempt. */
export type AttemptResult =
  | { at: 'delivered'; lastStatus: number }
  | { at: 'failed'; lastStatus: number | null; lastError: string | null; retryInMs: number | null }

export async function settleDelivery(db: Database, id: string, result: AttemptResult): Promise<void> {
  await db
    .update(deliveries)
    .set(changeOf(result))
    .where(and(eq(deliveries.id, id), eq(deliveries.status, 'pending')))
}

/** A delivery to `onEnd` has no further attempt after its end. A webhook's may be repeated, and keeps its target. */
const withoutAddress = { onEnd: null, target: sql`case when ${deliveries.webhook} is not null then ${deliveries.target} end` }

function changeOf(result: AttemptResult): PgUpdateSetSource<typeof deliveries> {
  if (result.at === 'delivered')
    return { ...withoutAddress, status: 'delivered', lastStatus: result.lastStatus, lastError: null, deliveredAt: sql`now()`, nextAt: null }
  const { lastStatus, lastError, retryInMs } = result
  return retryInMs === null
    ? { ...withoutAddress, status: 'failed', lastStatus, lastError, nextAt: null }
    : { lastStatus, lastError, nextAt: msFromNow(retryInMs) }
}

/** Newest first. */
export async function listDeliveries(
  db: Database,
  tenant: Tenant,
  webhook: string,
  { limit, cursor, status }: ListDeliveries,
): Promise<DeliveryRow[]> {
  const isEarlier = cursor === undefined ? undefined : lt(deliveries.id, cursor)
  const hasStatus = status === undefined ? undefined : eq(deliveries.status, status)
  return db
    .select()
    .from(deliveries)
    .where(and(eq(deliveries.webhook, webhook), isOf(tenant, deliveries.tenant), isEarlier, hasStatus))
    .orderBy(desc(deliveries.id))
    .limit(limit)
}

/** Due now, with all its attempts before it again; also one that was delivered. */
export async function retryDelivery(tx: Transaction, tenant: Tenant, webhook: string, id: string): Promise<DeliveryRow | undefined> {
  const [retried] = await tx
    .update(deliveries)
    .set({ status: 'pending', attempts: 0, nextAt: sql`now()`, deliveredAt: null })
    .where(and(eq(deliveries.id, id), eq(deliveries.webhook, webhook), isOf(tenant, deliveries.tenant)))
    .returning()
  return retried
}

export async function forgetDeliveries(db: Database, limit: number): Promise<boolean> {
  const isOld: SQL | undefined = and(lt(deliveries.createdAt, msAgo(keptMs)), sql`${deliveries.status} <> 'pending'`)
  const old = db.select({ id: deliveries.id }).from(deliveries).where(isOld).limit(limit)
  const { rowCount } = await db.delete(deliveries).where(inArray(deliveries.id, old))
  return rowCount === limit
}

export function toDelivery(row: DeliveryRow): Delivery {
  const { id, type, task, status, attempts, lastStatus, lastError, createdAt, nextAt, deliveredAt } = row
  return {
    ...{ id, type, task, status, attempts },
    ...(lastStatus !== null && { lastStatus }),
    ...(lastError !== null && { lastError }),
    createdAt: createdAt.toISOString(),
    ...(nextAt !== null && { nextAt: nextAt.toISOString() }),
    ...(deliveredAt !== null && { deliveredAt: deliveredAt.toISOString() }),
  }
}
