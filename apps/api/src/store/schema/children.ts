/** The trees of tasks. */
import type { OutcomeStatus, TaskId, TurnId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { boolean, index, integer, pgTable, text, unique, uuid } from 'drizzle-orm/pg-core'
import { tenant } from './columns.ts'

/** Tasks that a turn has spawned. A row stays when its task is deleted, because it counts in its tree, and goes with the root of the tree. */
export const children = pgTable(
  'children',
  {
    child: uuid().$type<TaskId>().primaryKey(),
    tenant: tenant(),
    parent: uuid().$type<TaskId>().notNull(),
    /** The turn that has spawned it, and its number. */
    turn: uuid().$type<TurnId>().notNull(),
    number: integer().notNull(),
    /** Unique in its turn. */
    name: text().notNull(),
    callId: text(),
    /** No reference: an insert would hold the row of the root, and a cancel takes a tree from its root on. */
    root: uuid().$type<TaskId>().notNull(),
    /** 1 for a child of the root. */
    depth: integer().notNull(),
    /** Whether it is canceled if it has not ended when the turn ends. */
    endsWithParent: boolean().notNull(),
    /** How its first turn ended. */
    status: text().$type<OutcomeStatus>(),
    /** Whether the log of the parent may lack its start or its end. */
    owed: boolean().notNull().default(true),
  },
  table => [
    unique('children_turn_name').on(table.turn, table.name),
    index('children_root').on(table.root),
    index('children_owed').on(table.parent).where(sql`${table.owed}`),
  ],
)
