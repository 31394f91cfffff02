/** Schedules and their runs. */
import type { CreateSchedule, Schedule, SkipReason } from '@rivulet/contract/schedules'
import type { TaskId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { index, integer, json, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'

export const schedules = pgTable(
  'schedules',
  {
    id: uuid().primaryKey(),
    tenant: tenant(),
    /** The body that created it: the task of each run, the cron line and the rules. */
    request: json().$type<CreateSchedule>().notNull(),
    status: text().$type<Schedule['status']>().notNull(),
    nextAt: time(),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [
    index('schedules_tenant').on(table.tenant, table.id),
    index('schedules_due').on(table.nextAt).where(sql`${table.status} = 'active'`),
  ],
)

/** One row for each time of a schedule, so that two processes cannot both run it. */
export const scheduleRuns = pgTable(
  'schedule_runs',
  {
    schedule: uuid()
      .notNull()
      .references(() => schedules.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    at: time().notNull(),
    task: uuid().$type<TaskId>(),
    turn: integer(),
    skipReason: text().$type<SkipReason>(),
    error: json().$type<{ code: string; message: string }>(),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [primaryKey({ columns: [table.schedule, table.at] })],
)
