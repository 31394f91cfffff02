/** Memory above the task. */
import type { Json } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { bigint, customType, integer, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'

const tsvector = customType<{ data: string }>({ dataType: () => 'tsvector' })

export const memoryValues = pgTable(
  'memory_values',
  {
    tenant: tenant(),
    scope: text().notNull(),
    key: text().notNull(),
    version: integer().notNull(),
    /** The id of the change that made this version, if its caller named one. */
    change: text(),
    value: json().$type<Json>().notNull(),
    /** The words of the value, for a search. */
    words: tsvector().notNull(),
    /** The row's part of the limits of its scope and tenant. */
    bytes: integer().notNull(),
    updatedAt: time().notNull().default(sql`now()`),
  },
  table => [primaryKey({ columns: [table.tenant, table.scope, table.key] })],
)

/** The bytes of each scope, and its latest version. The row whose scope is empty counts all scopes of a tenant. A change locks both, the scope's first. */
export const memorySizes = pgTable(
  'memory_sizes',
  {
    tenant: tenant(),
    scope: text().notNull(),
    bytes: bigint({ mode: 'number' }).notNull().default(0),
    version: integer().notNull().default(0),
  },
  table => [primaryKey({ columns: [table.tenant, table.scope] })],
)
