/** What turns wait for. */
import type { Json, JsonObject, TaskId, TurnId, Wait, WaitAnswer, WaitId, WaitKind, WaitStatus } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { boolean, index, integer, json, jsonb, pgTable, text, unique, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'
import { tasks, turns } from './tasks.ts'

export type WaitRequest = Pick<
  Wait,
  'index' | 'title' | 'detail' | 'schema' | 'callId' | 'tool' | 'arguments' | 'argumentsSchema' | 'actions'
>

/** What turns wait for. The first response that finds a row open decides. */
export const waits = pgTable(
  'waits',
  {
    id: uuid().$type<WaitId>().primaryKey(),
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    turn: uuid()
      .$type<TurnId>()
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    number: integer().notNull(),
    agent: text().notNull(),
    name: text().notNull(),
    kind: text().$type<WaitKind>().notNull(),
    /** What is asked: title, detail, schema, the call of a tool, the allowed actions. */
    request: json().$type<WaitRequest>().notNull(),
    assignee: text(),
    metadata: jsonb().$type<JsonObject>().notNull(),
    child: uuid().$type<TaskId>(),
    status: text().$type<WaitStatus>().notNull(),
    answer: json().$type<WaitAnswer>(),
    /** Whether the log has the last change of the turn's waits. */
    told: boolean().notNull().default(false),
    createdAt: time().notNull().default(sql`now()`),
    expiresAt: time().notNull(),
  },
  table => [
    unique('waits_turn_name').on(table.turn, table.name),
    index('waits_tenant_status_id').on(table.tenant, table.status, table.id),
    index('waits_task').on(table.task),
    index('waits_child').on(table.child).where(sql`${table.child} is not null`),
    index('waits_owed').on(table.turn).where(sql`not ${table.told}`),
    index('waits_expiry').on(table.expiresAt).where(sql`${table.status} = 'open'`),
  ],
)

/** Signals that came before a turn waited for them. */
export const signals = pgTable(
  'signals',
  {
    id: uuid().primaryKey(),
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    name: text().notNull(),
    data: json().$type<Json>().notNull(),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [index('signals_task_name').on(table.task, table.name, table.id), index('signals_created_at').on(table.createdAt)],
)
