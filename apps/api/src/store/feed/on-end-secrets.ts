/**
 * The secrets that sign deliveries of `onEnd`. They are sealed before a task or a schedule is stored, and a rotation seals them with the current key.
 * A secret that was stored in the clear stays readable, and is not moved.
 */
import type { OnEnd, TaskId } from '@rivulet/protocol'
import { and, asc, eq, gt, like, sql } from 'drizzle-orm'
import { sealedPrefix, type Vault } from '../access/vault.ts'
import type { Database } from '../connection/database.ts'
import type { Tenant } from '../connection/tenant.ts'
import { deliveries, schedules, tasks } from '../schema.ts'

export function sealOnEnd<T extends { onEnd?: OnEnd | undefined }>(vault: Pick<Vault, 'sealText'>, tenant: Tenant, request: T): T {
  const { onEnd } = request
  return onEnd?.secret === undefined ? request : { ...request, onEnd: { ...onEnd, secret: vault.sealText(tenant, onEnd.secret) } }
}

export type Rotation = { oldKeyName: string; rewrapText: Vault['rewrapText'] }
/** `next` is the last task of a full page; null after the last page. */
export type RewrappedTasks = { moved: number; next: TaskId | null }

/** Reads one page of tasks in the order of their ids, because no index holds the few tasks that have a secret. */
export async function rewrapTasks(db: Database, rotation: Rotation, after: TaskId | null, limit: number): Promise<RewrappedTasks> {
  const { id, tenant, onEnd } = tasks
  const isNext = after === null ? undefined : gt(id, after)
  const page = await db.select({ id, tenant, onEnd }).from(tasks).where(isNext).orderBy(asc(id)).limit(limit)
  const changes = page.flatMap(row => rewrapped(rotation, row.tenant, row.onEnd).map(own => ({ task: row.id, onEnd: own })))
  // No other statement changes `onEnd` of a task, so the row need not be locked since it was read.
  for (const change of changes) await db.update(tasks).set({ onEnd: change.onEnd }).where(eq(id, change.task))
  return { moved: changes.length, next: page.length === limit ? (page.at(-1)?.id ?? null) : null }
}

/** Returns how many it moved. */
export async function rewrapSchedules(db: Database, rotation: Rotation, limit: number): Promise<number> {
  return db.transaction(async tx => {
    const rows = await tx
      .select()
      .from(schedules)
      .where(like(sql`${schedules.request} -> 'onEnd' ->> 'secret'`, oldSecrets(rotation)))
      .limit(limit)
      .for('update', { skipLocked: true })
    const changes = rows.flatMap(({ id, tenant, request }) =>
      rewrapped(rotation, tenant, request.onEnd).map(onEnd => ({ id, request: { ...request, onEnd } })),
    )
    for (const { id, request } of changes) await tx.update(schedules).set({ request }).where(eq(schedules.id, id))
    return changes.length
  })
}

/** Those that have not ended: the others keep no secret. Returns how many it moved. */
export async function rewrapDeliveries(db: Database, rotation: Rotation, limit: number): Promise<number> {
  return db.transaction(async tx => {
    const rows = await tx
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.status, 'pending'), like(sql`${deliveries.onEnd} ->> 'secret'`, oldSecrets(rotation))))
      .limit(limit)
      .for('update', { skipLocked: true })
    const changes = rows.flatMap(({ id, tenant, onEnd }) => rewrapped(rotation, tenant, onEnd).map(own => ({ id, onEnd: own })))
    for (const { id, onEnd } of changes) await tx.update(deliveries).set({ onEnd }).where(eq(deliveries.id, id))
    return changes.length
  })
}

function oldSecrets({ oldKeyName }: Rotation): string {
  return `${sealedPrefix(oldKeyName)}:%`
}

/** Empty if the old key did not seal the secret, or does not open it. */
function rewrapped({ oldKeyName, rewrapText }: Rotation, tenant: Tenant, onEnd: OnEnd | null | undefined): OnEnd[] {
  if (!onEnd?.secret?.startsWith(`${sealedPrefix(oldKeyName)}:`)) return []
  const secret = rewrapText(tenant, onEnd.secret)
  return secret === null ? [] : [{ ...onEnd, secret }]
}
