/** Tasks, their turns and messages, and what the attempts of a turn leave behind. */

import type { OnEnd } from '@rivulet/contract/webhooks'
import type {
  Budget,
  Content,
  Cursor,
  Failure,
  Json,
  JsonObject,
  Message,
  MessageStatus,
  StopReason,
  TaskId,
  TaskStatus,
  TurnId,
  Usage,
  Wait,
} from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  doublePrecision,
  foreignKey,
  index,
  integer,
  json,
  jsonb,
  pgTable,
  primaryKey,
  text,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'

export const tasks = pgTable(
  'tasks',
  {
    id: uuid().$type<TaskId>().primaryKey(),
    tenant: tenant(),
    agent: text().notNull(),
    name: text(),
    /** The task that this one was forked from, or whose turn has spawned it. It may be gone by now. */
    parent: uuid().$type<TaskId>(),
    status: text().$type<TaskStatus>().notNull(),
    params: json().$type<Json>(),
    metadata: jsonb().$type<JsonObject>().notNull(),
    /**
     * The version of the task's rows, and the fence of its log: every change of what viewers see in them raises it to the next even number. A log is
     * never written under an odd epoch after the first, so the odd one behind it is free for viewers of the rows.
     */
    epoch: bigint({ mode: 'number' }).notNull(),
    priority: integer().notNull(),
    /** Its turns share the workers with those of this key; null: with those of the tenant's other tasks without a key. */
    concurrencyKey: text(),
    timeoutMs: bigint({ mode: 'number' }).notNull(),
    maxAttempts: integer().notNull(),
    /** Where the server reports the end of each turn. */
    onEnd: json().$type<OnEnd>(),
    /** What its turns may use; null: anything. */
    budget: json().$type<Budget>(),
    createdAt: time().notNull(),
    updatedAt: time().notNull(),
  },
  table => [
    uniqueIndex('tasks_tenant_agent_name').on(table.tenant, table.agent, table.name),
    index('tasks_tenant_id').on(table.tenant, table.id),
    index('tasks_tenant_agent_id').on(table.tenant, table.agent, table.id),
    index('tasks_tenant_status_id').on(table.tenant, table.status, table.id),
    index('tasks_parent').on(table.parent, table.id).where(sql`${table.parent} is not null`),
  ],
)

export const turns = pgTable(
  'turns',
  {
    id: uuid().$type<TurnId>().primaryKey(),
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    number: integer().notNull(),
    status: text().$type<TaskStatus>().notNull(),
    attempt: integer().notNull(),
    /** The first input. */
    input: json().$type<Content>(),
    /** All inputs, where there are several. */
    inputs: json().$type<Content[]>(),
    /** The metadata of the messages that its inputs become. */
    inputMetadata: json().$type<JsonObject>(),
    params: json().$type<Json>(),
    stopReason: text().$type<StopReason>(),
    /** Of the attempt that ended it. */
    usage: json().$type<Usage>(),
    /** Of all attempts, once it has ended; the cost is null where a part of it is unknown. */
    usageTotal: json().$type<Usage>(),
    cost: doublePrecision(),
    error: json().$type<Failure>(),
    /** What was thrown, where that is more than `error` tells viewers. Never in the log of events: only callers with a key get it. */
    errorDetail: text(),
    queuedAt: time().notNull(),
    startedAt: time(),
    /** When the attempt that runs, or ran last, was claimed. */
    attemptAt: time(),
    finishedAt: time(),

    /** Not to be started before. */
    runAt: time().notNull(),
    /** Whether it has to wait for `runAt`. If not, it starts at once, wherever Postgres' clock is meanwhile. */
    isDelayed: boolean().notNull().default(true),
    /** The first claim sets it; until then it has no effect. */
    deadline: time().notNull(),
    /** Attempts that failed, and workers that died; attempts that were given back are in neither. */
    failures: integer().notNull().default(0),
    deaths: integer().notNull().default(0),
    /** How often the turn was sent to the queue. */
    dispatch: integer().notNull().default(0),
    /** How it got its share of the workers: at once, because no turn waited, or by its rank. Null: it waits for it. */
    sent: text().$type<'direct' | 'picked'>(),

    /** Fixed by the first claim. */
    firstIndex: integer(),
    /** The claim that runs, or that ran last before the turn ended: its epoch, the id that its worker gave it, the worker, and the end of its lease. */
    epoch: bigint({ mode: 'number' }),
    claim: text(),
    /** That claim and those before it, at most 20: each may report its usage late. */
    claims: text().array().notNull().default([]),
    worker: text(),
    /** Of the worker that claimed it first; null while no worker has, or for a worker that named none. */
    version: text(),
    leaseUntil: time(),
    /** A cancel has begun, and `stopReason` and `error` say what the turn ends with; the reconciler completes it where its caller could not. */
    canceling: boolean().notNull().default(false),
    /** Whether `turn.finished` is in the log, or no viewer can be waiting for it. */
    announced: boolean().notNull().default(false),
    /** Where the log stood when it had the turn's end: a viewer with the cursor of the task's last end has everything, even when the log is gone. */
    endCursor: text().$type<Cursor>(),
    /** The trace of the caller that created the turn, in W3C Trace Context format. */
    traceparent: text(),

    /** Whether a rewind has left it behind. Its status stays its outcome. */
    discarded: boolean().notNull().default(false),
    /** The first of the turns that were discarded for this one. */
    discardsFrom: integer(),
    /** How it may become a part of an earlier turn: of the one that runs, or of the one before it in the queue, when that is claimed. */
    joins: text().$type<'inject' | 'merge'>(),
    /** The number of the turn that has taken it. It stays queued until that turn ends, and ends with it if its input is among the messages. */
    joinedTo: integer(),
    /** The index of its first message there, once that is stored. */
    joinIndex: integer(),

    /** Its waits as viewers see them, in the order in which they were asked. A copy of the rows of `waits`, so that every read of a turn has them. */
    waits: json().$type<Wait[]>(),
    /** How often the waits changed, or the turn parked. */
    waitsVersion: integer().notNull().default(0),
    /** The index after the last message that a park has stored. What the turn emits next begins with the stored ones. */
    keptTo: integer(),
    parkedAt: time(),
    /** `queued`: the next claim continues the attempt that parked. `claimed`: this one does, so the log has no `turn.started` of it. */
    resumed: text().$type<'queued' | 'claimed'>(),
  },
  table => [
    unique('turns_task_number').on(table.task, table.number),
    index('turns_queued').on(table.runAt).where(sql`${table.status} = 'queued'`),
    // By when it is due, and then by the time that a turn without a delay was queued, which is after now() where Postgres' clock was set back.
    index('turns_due')
      .on(sql`(case when ${table.isDelayed} then ${table.runAt} else '-infinity' end)`, table.runAt)
      .where(sql`${table.status} = 'queued'`),
    // For the quota of a tenant. Built by migrations/concurrent.
    index('turns_unfinished').on(table.tenant).where(sql`${table.status} in ('queued', 'running', 'waiting') and not ${table.canceling}`),
    index('turns_sent').on(table.sent).where(sql`${table.sent} is not null and ${table.status} in ('queued', 'running')`),
    index('turns_running').on(table.leaseUntil).where(sql`${table.status} = 'running'`),
    // For the reconciler: nearly all turns that wait for a worker or an answer are neither. In the clauses of its statements, because Postgres compares these
    // one by one. Built by migrations/concurrent.
    index('turns_timed')
      .on(table.deadline)
      .where(sql`${table.status} in ('queued', 'running', 'waiting') and ${table.startedAt} is not null and ${table.status} <> 'waiting'`),
    index('turns_canceling').on(table.queuedAt).where(sql`${table.status} in ('queued', 'running', 'waiting') and ${table.canceling}`),
    // For lists by the time of the status. Built by migrations/concurrent.
    index('turns_status_at').on(table.tenant, sql`coalesce(${table.finishedAt}, ${table.startedAt}, ${table.queuedAt})`, table.id),
    index('turns_owed').on(table.finishedAt).where(sql`${table.status} in ('completed', 'failed', 'canceled') and not ${table.announced}`),
  ],
)

export const messages = pgTable(
  'messages',
  {
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    index: integer().notNull(),
    turn: integer().notNull(),
    attempt: integer().notNull(),
    author: text().$type<'user' | 'agent' | 'system'>().notNull(),
    content: json().$type<Content>().notNull(),
    metadata: json().$type<JsonObject>().notNull(),
    status: text().$type<MessageStatus>().notNull(),
    stopReason: text().$type<StopReason>(),
    usage: json().$type<Usage>(),
    response: json().$type<NonNullable<Message['response']>>(),
    error: json().$type<Failure>(),
    createdAt: time().notNull(),
    finishedAt: time(),
  },
  table => [
    primaryKey({ columns: [table.task, table.index] }),
    index('messages_task_turn').on(table.task, table.turn),
    foreignKey({ columns: [table.task, table.turn], foreignColumns: [turns.task, turns.number], name: 'messages_turn' }).onDelete(
      'cascade',
    ),
  ],
)

/**
 * The state of a task as each turn that changed it has left it; the latest row is what stands. Turn 0 is before the first. A turn that parked has a row
 * already, which its next attempt removes.
 */
export const states = pgTable(
  'states',
  {
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    turn: integer().notNull(),
    tenant: tenant(),
    version: integer().notNull(),
    value: json().$type<Json>().notNull(),
    /** It was changed between two turns, and no log has told that yet. */
    owed: boolean().notNull().default(false),
  },
  table => [primaryKey({ columns: [table.task, table.turn] }), index('states_owed').on(table.task).where(sql`${table.owed}`)],
)

/** Encrypted values for the worker of a turn, of one turn or, as turn 0, of the whole task. In a table of their own, so that no read of a task has them. */
export const taskSecrets = pgTable(
  'task_secrets',
  {
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    turn: integer().notNull(),
    tenant: tenant(),
    /** Which SECRETS_KEY opens it. */
    key: text().notNull(),
    sealed: text().notNull(),
  },
  table => [primaryKey({ columns: [table.task, table.turn] }), index('task_secrets_key').on(table.key)],
)

/** The steps that a turn has taken: when, and what they came to, so that its next attempt need not take them again. */
export const steps = pgTable(
  'steps',
  {
    turn: uuid()
      .$type<TurnId>()
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    name: text().notNull(),
    /** JSON, as the worker wrote it and reads it. Null when the turn has ended, because then no attempt needs it. */
    memory: text(),
    finishedAt: time().notNull().default(sql`now()`),
    durationMs: integer(),
  },
  table => [
    primaryKey({ columns: [table.turn, table.name] }),
    index('steps_memory').on(table.turn).where(sql`${table.memory} is not null`),
  ],
)

/** Attempts that another one followed. The latest attempt of a turn is in its own row. */
export const attempts = pgTable(
  'attempts',
  {
    turn: uuid()
      .$type<TurnId>()
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    attempt: integer().notNull(),
    /** `lost`: its worker died. */
    status: text().$type<'failed' | 'lost'>().notNull(),
    worker: text(),
    startedAt: time(),
    finishedAt: time().notNull().default(sql`now()`),
    error: json().$type<Failure>().notNull(),
    errorDetail: text(),
    usage: json().$type<Usage>(),
    /** What it had said, as far as that fits. */
    messages: json().$type<Message[]>().notNull(),
    isCut: boolean().notNull().default(false),
  },
  table => [primaryKey({ columns: [table.turn, table.attempt] })],
)
