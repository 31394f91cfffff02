/** Turns on their way to the workers. */
import type { TurnId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { bigserial, boolean, index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'
import { turns } from './tasks.ts'

/**
 * Turns that are to be sent to the queue; a row is gone once that has happened. A row whose turn has no share of the workers yet waits here. A
 * trigger fills in everything but the turn, from the turn and its task, so that the next turns are picked by an index of this table.
 */
export const outbox = pgTable(
  'outbox',
  {
    id: bigserial({ mode: 'number' }).primaryKey(),
    turn: uuid()
      .$type<TurnId>()
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    /** The name of its queue. */
    agent: text().notNull().default(''),
    tenant: tenant(),
    /** The concurrency key of the task, or an empty text. */
    share: text().notNull().default(''),
    priority: integer().notNull().default(0),
    /** Whether the turn is due and has no share of the workers. */
    waits: boolean().notNull().default(false),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [
    index('outbox_turn').on(table.turn),
    index('outbox_waiting').on(table.agent, table.tenant, table.share, table.priority.desc(), table.id).where(sql`${table.waits}`),
  ],
)

/** Turns of agents with a limit per minute that were picked: `at` is null until a worker has claimed the turn. */
export const starts = pgTable(
  'starts',
  {
    turn: uuid()
      .$type<TurnId>()
      .primaryKey()
      .references(() => turns.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    agent: text().notNull(),
    share: text().notNull(),
    at: time(),
  },
  table => [index('starts_share').on(table.agent, table.tenant, table.share)],
)
