/** The feed of changes, and those that it is delivered to. */

import type { FeedEntryType } from '@rivulet/contract/feed'
import type { Delivery, OnEnd, Webhook } from '@rivulet/contract/webhooks'
import type { Cursor, TaskId, TaskStatus } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { bigint, bigserial, boolean, index, integer, json, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'

/**
 * Changes of tasks and turns. Triggers write a row in the transaction of the change, so no change is without its row and no row without its change.
 * Readers take rows in the order of (`xid`, `seq`), and only those of transactions that are older than every running one: a row that is committed
 * late can then not appear before one that was read. `xid` is the number of the transaction, and `feedServer.shift`.
 */
export const feed = pgTable(
  'feed',
  {
    xid: bigint({ mode: 'number' }).notNull().default(sql`feed_position()`),
    seq: bigserial({ mode: 'number' }).notNull(),
    tenant: tenant(),
    type: text().$type<FeedEntryType>().notNull(),
    task: uuid().$type<TaskId>().notNull(),
    agent: text().notNull(),
    /** The number of the turn; null for a change of the task. */
    turn: integer(),
    attempt: integer(),
    status: text().$type<TaskStatus>(),
    errorCode: text(),
    /** The task's `onEnd`, beside the end of its turn, because the task may be removed before the entry is read. Null once it is read. */
    onEnd: json().$type<OnEnd>(),
    at: time().notNull().default(sql`now()`),
  },
  table => [primaryKey({ columns: [table.xid, table.seq] }), index('feed_tenant').on(table.tenant, table.xid, table.seq)],
)

/**
 * One row: the server that the rows are on, and what is added to the numbers of its transactions, so that they are higher than those of the servers
 * before it.
 */
export const feedServer = pgTable('feed_server', {
  isOnly: boolean().primaryKey().default(true),
  /** Null until the first connection. */
  server: text(),
  shift: bigint({ mode: 'number' }).notNull().default(0),
})

export const webhooks = pgTable(
  'webhooks',
  {
    id: uuid().primaryKey(),
    tenant: tenant(),
    url: text().notNull(),
    events: text().array().$type<FeedEntryType[]>().notNull(),
    /** Null: all agents. */
    agent: text(),
    status: text().$type<Webhook['status']>().notNull(),
    /** Encrypted, if the API that stored it has a SECRETS_KEY (`vault.sealText`). The server signs with it. */
    secret: text().notNull(),
    oldSecret: text(),
    oldSecretUntil: time(),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [index('webhooks_tenant').on(table.tenant, table.id)],
)

/** Entries of the feed on their way to an address. Made in the transaction that moves the place of their reader, so that each is made once. */
export const deliveries = pgTable(
  'deliveries',
  {
    id: uuid().primaryKey(),
    tenant: tenant(),
    /** Null for the `onEnd` of a task. */
    webhook: uuid().references(() => webhooks.id, { onDelete: 'cascade' }),
    task: uuid().$type<TaskId>().notNull(),
    type: text().$type<FeedEntryType>().notNull(),
    /** The body, the same for all attempts. */
    payload: text().notNull(),
    /** The address and the secret, encrypted as in the task (`sealOnEnd`). Null for a webhook, and once the delivery has ended. */
    onEnd: json().$type<OnEnd>(),
    /** The host and port of its address (`deliveryTarget`); null where an earlier version has created it. */
    target: text(),
    status: text().$type<Delivery['status']>().notNull().default('pending'),
    attempts: integer().notNull().default(0),
    lastStatus: integer(),
    lastError: text(),
    createdAt: time().notNull().default(sql`now()`),
    /** When the next attempt is due. An attempt that is under way moves it, so that another process repeats it if this one dies. */
    nextAt: time(),
    deliveredAt: time(),
  },
  table => [
    index('deliveries_due').on(table.nextAt).where(sql`${table.status} = 'pending'`),
    index('deliveries_webhook').on(table.webhook, table.id),
    index('deliveries_created').on(table.createdAt),
  ],
)

/** How far a part of the server has read the feed. */
export const feedReaders = pgTable('feed_readers', {
  name: text().primaryKey(),
  place: text().$type<Cursor>().notNull(),
})
