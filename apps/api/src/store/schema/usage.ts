/** What the responses of models used: one row for each, from which every sum and every bill is made. */
import type { TaskId, TurnId, Usage } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { doublePrecision, index, integer, json, numeric, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'

/**
 * A row outlives its task, because a bill has to stay right when a task is deleted: it refers to nothing, and has what it is grouped by. The id comes
 * from the worker, so that a response that is reported again counts once.
 */
export const usage = pgTable(
  'usage',
  {
    turn: uuid().$type<TurnId>().notNull(),
    id: text().notNull(),
    tenant: tenant(),
    task: uuid().$type<TaskId>().notNull(),
    /** The root of the tree, whose budget it counts for: the task itself, unless it is a child. */
    root: uuid().$type<TaskId>().notNull(),
    agent: text().notNull(),
    concurrencyKey: text(),
    attempt: integer().notNull(),
    model: text(),
    usage: json().$type<Usage>().notNull(),
    tokens: doublePrecision().notNull(),
    /** In US dollars, by the prices of the moment it was stored; null: the model has no price. */
    cost: numeric(),
    at: time().notNull().default(sql`now()`),
  },
  table => [
    primaryKey({ columns: [table.turn, table.id] }),
    index('usage_tenant_at').on(table.tenant, table.at),
    index('usage_at').on(table.at),
    index('usage_root').on(table.root),
  ],
)
