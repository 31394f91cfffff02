/**
 * The secrets that sign deliveries of `onEnd`. They are sealed before a task or a schedule is stored. Those that were stored in the clear, by older
 * versions or without a SECRETS_KEY, and those of an old key are sealed with the current one later, a page at a time.
 */
import type { OnEnd } from '@rivulet/contract/webhooks'
import type { TaskId } from '@rivulet/protocol'
import { and, asc, eq, gt, sql } from 'drizzle-orm'
import { isStale, type Vault } from '../access/vault.ts'
import type { Database } from '../connection/database.ts'
import type { Tenant } from '../connection/tenant.ts'
import { deliveries, schedules, tasks } from '../schema.ts'

export function sealOnEnd<T extends { onEnd?: OnEnd | undefined }>(vault: Pick<Vault, 'sealText'>, tenant: Tenant, request: T): T {
  const { onEnd } = request
  return onEnd?.secret === undefined ? request : { ...request, onEnd: { ...onEnd, secret: vault.sealText(tenant, onEnd.secret) } }
}

type Renewal = Pick<Vault, 'oldKeyName' | 'renewText'>
/** `next` is the last task of a full page; null after the last page. */
type RenewedTasks = { moved: number; next: TaskId | null }

/** Reads one page of tasks in the order of their ids, because no index holds the few tasks that have a secret. */
export async function renewTasks(db: Database, renewal: Renewal, after: TaskId | null, limit: number): Promise<RenewedTasks> {
  const { id, tenant, onEnd } = tasks
  const isNext = after === null ? undefined : gt(id, after)
  const page = await db.select({ id, tenant, onEnd }).from(tasks).where(isNext).orderBy(asc(id)).limit(limit)
  const changes = page.flatMap(row => renewed(renewal, row.tenant, row.onEnd).map(own => ({ task: row.id, onEnd: own })))
  // No other statement changes `onEnd` of a task, so the row need not be locked since it was read.
  for (const change of changes) await db.update(tasks).set({ onEnd: change.onEnd }).where(eq(id, change.task))
  return { moved: changes.length, next: page.length === limit ? (page.at(-1)?.id ?? null) : null }
}

/** Returns how many it moved. */
export async function renewSchedules(db: Database, renewal: Renewal, limit: number): Promise<number> {
  return db.transaction(async tx => {
    const rows = await tx
      .select()
      .from(schedules)
      .where(isStale(sql`${schedules.request} -> 'onEnd' ->> 'secret'`, renewal))
      .limit(limit)
      .for('update', { skipLocked: true })
    const changes = rows.flatMap(({ id, tenant, request }) =>
      renewed(renewal, tenant, request.onEnd).map(onEnd => ({ id, request: { ...request, onEnd } })),
    )
    for (const { id, request } of changes) await tx.update(schedules).set({ request }).where(eq(schedules.id, id))
    return changes.length
  })
}

/** Those that have not ended: the others keep no secret. Returns how many it moved. */
export async function renewDeliveries(db: Database, renewal: Renewal, limit: number): Promise<number> {
  return db.transaction(async tx => {
    const rows = await tx
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.status, 'pending'), isStale(sql`${deliveries.onEnd} ->> 'secret'`, renewal)))
      .limit(limit)
      .for('update', { skipLocked: true })
    const changes = rows.flatMap(({ id, tenant, onEnd }) => renewed(renewal, tenant, onEnd).map(own => ({ id, onEnd: own })))
    for (const { id, onEnd } of changes) await tx.update(deliveries).set({ onEnd }).where(eq(deliveries.id, id))
    return changes.length
  })
}

/** Empty if the secret needs no change, or if no key opens it. */
function renewed({ renewText }: Renewal, tenant: Tenant, onEnd: OnEnd | null | undefined): OnEnd[] {
  const secret = onEnd?.secret === undefined ? null : renewText(tenant, onEnd.secret)
  return onEnd && secret !== null ? [{ ...onEnd, secret }] : []
}
