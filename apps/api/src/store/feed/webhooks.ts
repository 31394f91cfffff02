/** Webhooks of tenants. */
import type { ChangeWebhook, ListWebhooks } from '@rivulet/contract/webhooks'
import { and, asc, count, eq, gt, or } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import { isStale, type Vault } from '../access/vault.ts'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { lockQuota } from '../connection/quota-lock.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { deliveries, webhooks } from '../schema.ts'
import { deliveryTarget } from './delivery-target.ts'

export type WebhookRow = typeof webhooks.$inferSelect
type NewWebhookRow = Pick<WebhookRow, 'url' | 'events' | 'agent' | 'secret'>

/** How long the server signs with the old secret, too, after a rotation. */
const overlapMs = 24 * 3_600_000

/** Null when the tenant has `most` webhooks already. */
export async function insertWebhook(
  db: Database | Transaction,
  tenant: Tenant,
  row: NewWebhookRow,
  most: number,
): Promise<WebhookRow | null> {
  return db.transaction(async tx => {
    await lockQuota(tx, tenant, 'webhooks')
    const [{ had } = { had: 0 }] = await tx.select({ had: count() }).from(webhooks).where(isOf(tenant, webhooks.tenant))
    if (had >= most) return null
    const [created] = await tx
      .insert(webhooks)
      .values({ ...row, id: uuidv7(), tenant, status: 'active' })
      .returning()
    return created ?? null
  })
}

/** Oldest first. */
export async function listWebhooks(db: Database, tenant: Tenant, { limit, cursor }: ListWebhooks): Promise<WebhookRow[]> {
  const isLater = cursor === undefined ? undefined : gt(webhooks.id, cursor)
  return db
    .select()
    .from(webhooks)
    .where(and(isOf(tenant, webhooks.tenant), isLater))
    .orderBy(asc(webhooks.id))
    .limit(limit)
}

export async function findWebhook(db: Database | Transaction, tenant: Tenant, id: string): Promise<WebhookRow | undefined> {
  const [found] = await db.select().from(webhooks).where(isWebhook(tenant, id))
  return found
}

/** @param change a `secret` is a rotation: the old one stays valid for a while. */
export async function updateWebhook(
  db: Database | Transaction,
  tenant: Tenant,
  id: string,
  { secret, ...change }: Omit<ChangeWebhook, 'secret'> & { secret?: string | undefined },
): Promise<WebhookRow | undefined> {
  const rotation = secret === undefined ? {} : { secret, oldSecret: webhooks.secret, oldSecretUntil: msFromNow(overlapMs) }
  const values = { ...defined(change), ...rotation }
  if (Object.keys(values).length === 0) return findWebhook(db, tenant, id)
  return db.transaction(async tx => {
    const [changed] = await tx.update(webhooks).set(values).where(isWebhook(tenant, id)).returning()
    if (changed && change.url !== undefined)
      await tx
        .update(deliveries)
        .set({ target: deliveryTarget(change.url) })
        .where(and(eq(deliveries.webhook, id), eq(deliveries.status, 'pending')))
    return changed
  })
}

export async function deleteWebhook(db: Database | Transaction, tenant: Tenant, id: string): Promise<boolean> {
  const { rowCount } = await db.delete(webhooks).where(isWebhook(tenant, id))
  return rowCount === 1
}

export async function disableWebhook(db: Database, id: string): Promise<void> {
  await db.update(webhooks).set({ status: 'disabled' }).where(eq(webhooks.id, id))
}

/** Seals up to `limit` secrets with the current key, and returns how many it changed. Those that no key opens stay as they are. */
export async function renewWebhookSecrets(db: Database, renewal: Pick<Vault, 'oldKeyName' | 'renewText'>, limit: number): Promise<number> {
  return db.transaction(async tx => {
    const { id, tenant, secret, oldSecret } = webhooks
    const rows = await tx
      .select({ id, tenant, secret, oldSecret })
      .from(webhooks)
      .where(or(isStale(secret, renewal), isStale(oldSecret, renewal)))
      .limit(limit)
      .for('update', { skipLocked: true })
    const moved = rows.flatMap(row => {
      const change = defined({
        secret: renewal.renewText(row.tenant, row.secret) ?? undefined,
        oldSecret: (row.oldSecret && renewal.renewText(row.tenant, row.oldSecret)) ?? undefined,
      })
      return Object.keys(change).length > 0 ? [{ id: row.id, change }] : []
    })
    for (const { id, change } of moved) await tx.update(webhooks).set(change).where(eq(webhooks.id, id))
    return moved.length
  })
}

function isWebhook(tenant: Tenant, id: string) {
  return and(eq(webhooks.id, id), isOf(tenant, webhooks.tenant))
}

function defined<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>
}
