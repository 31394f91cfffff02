/** Agents, the workers that run them, and what tenants allow them. */
import { sql } from 'drizzle-orm'
import { boolean, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'

export const agents = pgTable(
  'agents',
  {
    /** The name of its queue: that of the agent, or `<agent>@<tenant>` where the name of the agent was taken. */
    name: text().primaryKey(),
    /** The name of the agent within its tenant. */
    agent: text().notNull().generatedAlwaysAs(sql`split_part("name", '@', 1)`),
    description: text().notNull(),
    /** Whose agent it is: only workers of this tenant have registered it. Null: all tenants share it. */
    tenant: text(),
    /** What it has announced for its tasks, as JSON text, which keeps the order of a form's fields. Null: nothing. */
    settings: text(),
  },
  table => [uniqueIndex('agents_agent').on(table.agent, sql`coalesce(${table.tenant}, '')`)],
)

export const workers = pgTable('workers', {
  id: text().primaryKey(),
  /** The id of the key that registered it. Null: the API required none, or a version of before registered it. */
  key: text(),
  /** The names of their queues. */
  agents: text().array().notNull(),
  seenAt: time().notNull(),
  version: text(),
  slots: integer(),
})

/** What a tenant allows an agent for its own tasks. */
export const limits = pgTable(
  'limits',
  {
    tenant: tenant(),
    agent: text().notNull(),
    concurrency: integer(),
    perKey: integer(),
    perMinute: integer(),
    weights: jsonb().$type<Record<string, number>>().notNull().default({}),
    /** The agent accepts tasks and starts none. */
    paused: boolean().notNull().default(false),
  },
  table => [primaryKey({ columns: [table.tenant, table.agent] })],
)
