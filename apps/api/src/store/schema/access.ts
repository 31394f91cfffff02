/** Keys, secrets and revoked tokens, and who has changed what. */

import type { AuditEntry } from '@rivulet/contract/audit'
import type { AuditAction, Scope } from '@rivulet/contract/scopes'
import type { Json, JsonObject, TaskId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { bigint, bigserial, boolean, index, integer, json, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'
import { tasks } from './tasks.ts'

/** The keys of callers and workers. Of the secret, only an HMAC is stored, in hex. */
export const keys = pgTable('keys', {
  id: text().primaryKey(),
  tenant: text().notNull(),
  name: text().notNull(),
  scopes: text().array().$type<Scope[]>().notNull(),
  digest: text().notNull(),
  createdAt: time().notNull().default(sql`now()`),
  expiresAt: time(),
  revokedAt: time(),
  lastUsedAt: time(),
  /** The key that a rotation created in place of this one. */
  replacedBy: text(),
  /** For the scope `worker`: for all tenants, or for the key's own. */
  allTenants: boolean().notNull().default(false),
  /** Limited to these agents; null: to none. */
  agents: text().array(),
})

/** Secrets of this installation that no person sets, by their purpose; in base64. The first process that needs one makes it. */
export const secrets = pgTable('secrets', {
  name: text().primaryKey(),
  value: text().notNull(),
})

/** Changes of access and removals, each inserted in the transaction of its change. Ordered as the feed, so that a reader misses no late entry. */
export const audit = pgTable(
  'audit',
  {
    xid: bigint({ mode: 'number' }).notNull().default(sql`feed_position()`),
    seq: bigserial({ mode: 'number' }).notNull(),
    /** `*` for a change of the installation, which no tenant sees. */
    tenant: text().notNull(),
    action: text().$type<AuditAction>().notNull(),
    target: text().notNull(),
    via: text().$type<AuditEntry['via']>().notNull(),
    key: text(),
    subject: text(),
    address: text(),
    details: json().$type<JsonObject>().notNull(),
    at: time().notNull().default(sql`now()`),
  },
  table => [
    primaryKey({ columns: [table.xid, table.seq] }),
    index('audit_tenant').on(table.tenant, table.xid, table.seq),
    index('audit_action').on(table.tenant, table.action, table.xid, table.seq),
    index('audit_at').on(table.at),
  ],
)

/** Tokens of a task that no longer count: those of sessions that began up to then. Kept for as long as such a token could live. */
export const tokenRevocations = pgTable(
  'token_revocations',
  {
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    /** Whose tokens; empty: all of the task. */
    subject: text().notNull(),
    revokedAt: time().notNull(),
  },
  table => [primaryKey({ columns: [table.task, table.subject] })],
)

export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    tenant: tenant(),
    /** The caller's own key, after the namespace of the caller and a space. */
    key: text().notNull(),
    /** Of the method, the route, its parameters and the body. */
    fingerprint: text().notNull(),
    /** Null while the first request is still in flight. */
    status: integer(),
    body: json().$type<Json>(),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [
    primaryKey({ columns: [table.tenant, table.key] }),
    index('idempotency_keys_created_at').on(table.createdAt),
    // The task that a response is about. With the task, a trigger removes its responses.
    index('idempotency_keys_task').on(sql`coalesce(body -> 'task' ->> 'id', body -> 'turn' ->> 'task', body -> 'wait' ->> 'task')`),
    // The same for a file.
    index('idempotency_keys_file').on(sql`(body -> 'file' ->> 'id')`),
  ],
)
