/** Schedules of tenants, and what became of their times. */
import type { CreateSchedule, ListRuns, ListSchedules, Schedule, ScheduleRun } from '@rivulet/contract/schedules'
import { and, asc, count, desc, eq, gt, lt } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Database, Transaction } from '../connection/database.ts'
import { lockQuota } from '../connection/quota-lock.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { keepFiles } from '../files/file-references.ts'
import { scheduleRuns, schedules } from '../schema.ts'

export type ScheduleRow = typeof schedules.$inferSelect
export type ScheduleRunRow = typeof scheduleRuns.$inferSelect

/** Null when the tenant has `most` schedules already. */
export async function insertSchedule(
  tx: Transaction,
  tenant: Tenant,
  { request, nextAt, most }: { request: CreateSchedule; nextAt: Date | null; most: number },
): Promise<ScheduleRow | null> {
  await lockQuota(tx, tenant, 'schedules')
  const [{ had } = { had: 0 }] = await tx.select({ had: count() }).from(schedules).where(isOf(tenant, schedules.tenant))
  if (had >= most) return null
  const [created] = await tx.insert(schedules).values({ id: uuidv7(), tenant, request, nextAt, status: 'active' }).returning()
  if (created) await keepFiles(tx, created, [request.input])
  return created ?? null
}

/** Oldest first. */
export async function listSchedules(db: Database, tenant: Tenant, { limit, cursor }: ListSchedules): Promise<ScheduleRow[]> {
  return db
    .select()
    .from(schedules)
    .where(and(isOf(tenant, schedules.tenant), cursor === undefined ? undefined : gt(schedules.id, cursor)))
    .orderBy(asc(schedules.id))
    .limit(limit)
}

export async function findSchedule(db: Database | Transaction, tenant: Tenant, id: string): Promise<ScheduleRow | undefined> {
  const [found] = await db.select().from(schedules).where(isSchedule(tenant, id))
  return found
}

/** Holds the schedule until the end of the transaction, so that no run of it is created meanwhile. */
export async function lockSchedule(tx: Transaction, tenant: Tenant, id: string): Promise<ScheduleRow | undefined> {
  const [found] = await tx.select().from(schedules).where(isSchedule(tenant, id)).for('update')
  return found
}

export async function setSchedule(
  db: Database | Transaction,
  tenant: Tenant,
  id: string,
  change: Pick<ScheduleRow, 'status' | 'nextAt'>,
): Promise<ScheduleRow | undefined> {
  const [changed] = await db.update(schedules).set(change).where(isSchedule(tenant, id)).returning()
  return changed
}

export async function deleteSchedule(db: Database | Transaction, tenant: Tenant, id: string): Promise<boolean> {
  const { rowCount } = await db.delete(schedules).where(isSchedule(tenant, id))
  return rowCount === 1
}

/** Newest first. */
export async function listRuns(db: Database, tenant: Tenant, schedule: string, { limit, cursor }: ListRuns): Promise<ScheduleRunRow[]> {
  const isEarlier = cursor === undefined ? undefined : lt(scheduleRuns.at, new Date(cursor))
  return db
    .select()
    .from(scheduleRuns)
    .where(and(eq(scheduleRuns.schedule, schedule), isOf(tenant, scheduleRuns.tenant), isEarlier))
    .orderBy(desc(scheduleRuns.at))
    .limit(limit)
}

export function toSchedule({ id, request, status, createdAt, nextAt }: ScheduleRow): Schedule {
  const { agent, cron, timezone, input, params, name, overlap, missed } = request
  return {
    ...{ id, agent, cron, timezone },
    ...(input !== undefined && { input }),
    ...(params !== undefined && { params }),
    ...(name !== undefined && { name }),
    ...{ overlap, missed, status },
    createdAt: createdAt.toISOString(),
    ...(status === 'active' && nextAt !== null && { nextAt: nextAt.toISOString() }),
  }
}

export function toScheduleRun({ at, task, turn, skipReason, error, createdAt }: ScheduleRunRow): ScheduleRun {
  return {
    at: at.toISOString(),
    ...(task !== null && { task }),
    ...(turn !== null && { turn }),
    ...(skipReason !== null && { skipReason }),
    ...(error !== null && { error }),
    createdAt: createdAt.toISOString(),
  }
}

function isSchedule(tenant: Tenant, id: string) {
  return and(eq(schedules.id, id), isOf(tenant, schedules.tenant))
}
