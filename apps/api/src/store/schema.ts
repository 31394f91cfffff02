/**
 * The tables, under the names of the protocol. Postgres is the truth: what is accepted is here, what is announced as finished is here.
 * The SQL in `migrations/` is generated from this file by `npm run migrations:generate`; a test fails when the two drift apart.
 */
import type {
  Content,
  CreateSchedule,
  Cursor,
  Delivery,
  Failure,
  FeedEntryType,
  FileId,
  Json,
  JsonObject,
  Message,
  MessageStatus,
  OnEnd,
  Schedule,
  Scope,
  SkipReason,
  StopReason,
  TaskId,
  TaskStatus,
  TurnId,
  Usage,
  Wait,
  WaitAnswer,
  WaitId,
  WaitKind,
  WaitStatus,
  Webhook,
} from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import {
  bigint,
  bigserial,
  boolean,
  customType,
  foreignKey,
  index,
  integer,
  json,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { defaultTenant } from './connection/tenant.ts'

export type WaitRequest = Pick<Wait, 'title' | 'detail' | 'schema' | 'callId' | 'tool' | 'arguments' | 'actions'>

export type FileStoreName = 'postgres' | 's3'

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' })
const time = () => timestamp({ withTimezone: true, precision: 3 })
/** The tenant of the row. The default is for rows from before there were tenants; row-level security rejects it for other tenants. */
const tenant = () => text().notNull().default(defaultTenant)

export const agents = pgTable('agents', {
  name: text().primaryKey(),
  description: text().notNull(),
  /** Whose agent it is: only workers of this tenant have registered it. Null: all tenants share it. */
  tenant: text(),
  /** What it has announced for its tasks, as JSON text, which keeps the order of a form's fields. Null: nothing. */
  settings: text(),
})

export const workers = pgTable('workers', {
  id: text().primaryKey(),
  agents: text().array().notNull(),
  seenAt: time().notNull(),
})

/** Who may ask. Of the secret there is only an HMAC, in hex. */
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
  /** For the scope `worker`: for all tenants, or for the key's own; and for these agents, or for all. */
  allTenants: boolean().notNull().default(false),
  agents: text().array(),
})

/** Secrets of this installation that no person sets, by their purpose; in base64. The first process that needs one makes it. */
export const secrets = pgTable('secrets', {
  name: text().primaryKey(),
  value: text().notNull(),
})

export const tasks = pgTable(
  'tasks',
  {
    id: uuid().$type<TaskId>().primaryKey(),
    tenant: tenant(),
    agent: text().notNull(),
    name: text(),
    /** The task that this one was forked from. It may be gone by now. */
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
    createdAt: time().notNull(),
    updatedAt: time().notNull(),
  },
  table => [
    uniqueIndex('tasks_tenant_agent_name').on(table.tenant, table.agent, table.name),
    index('tasks_tenant_id').on(table.tenant, table.id),
    index('tasks_tenant_agent_id').on(table.tenant, table.agent, table.id),
    index('tasks_tenant_status_id').on(table.tenant, table.status, table.id),
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
    params: json().$type<Json>(),
    stopReason: text().$type<StopReason>(),
    usage: json().$type<Usage>(),
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
    /** The claim that runs, or that ran last before the turn ended: its epoch, its caller's own id, who and until when. */
    epoch: bigint({ mode: 'number' }),
    claim: text(),
    worker: text(),
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
    index('turns_sent').on(table.sent).where(sql`${table.sent} is not null and ${table.status} in ('queued', 'running')`),
    index('turns_running').on(table.leaseUntil).where(sql`${table.status} = 'running'`),
    index('turns_deadline').on(table.deadline).where(sql`${table.status} in ('queued', 'running', 'waiting')`),
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

/** Files that are complete. Their bytes are in `file_chunks`, or in a bucket. */
export const files = pgTable(
  'files',
  {
    id: uuid().$type<FileId>().primaryKey(),
    tenant: tenant(),
    name: text(),
    mimeType: text().notNull(),
    size: bigint({ mode: 'number' }).notNull(),
    /** In hex. */
    sha256: text().notNull(),
    /** Where its bytes are. */
    store: text().$type<FileStoreName>().notNull(),
    /** For which task it was uploaded: with a token of the task, or by a worker. Other tokens may not use it. */
    uploadedFor: uuid().$type<TaskId>(),
    /** Whether it is a value that the server took out of a message, because it was large. */
    isSpill: boolean().notNull().default(false),
    /** Whether a task has ever referred to it. One that none refers to is removed after a day. */
    isUsed: boolean().notNull().default(false),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [
    unique('files_tenant_id').on(table.tenant, table.id),
    index('files_unused').on(table.createdAt).where(sql`not ${table.isUsed}`),
  ],
)

/** Which tasks refer to which files. When a row goes, a trigger removes the file that no other task refers to. */
export const taskFiles = pgTable(
  'task_files',
  {
    task: uuid()
      .$type<TaskId>()
      .notNull()
      .references(() => tasks.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    file: uuid().$type<FileId>().notNull(),
  },
  table => [
    primaryKey({ columns: [table.task, table.file] }),
    index('task_files_file').on(table.file),
    // With the tenant: no task can refer to a file of another.
    foreignKey({ columns: [table.tenant, table.file], foreignColumns: [files.tenant, files.id], name: 'task_files_files' }),
  ],
)

/** Bytes that belong to no file: of an upload that is not complete, or of a file that was removed. The reconciler removes those that are not touched. */
export const looseFiles = pgTable(
  'loose_files',
  {
    id: uuid().$type<FileId>().primaryKey(),
    tenant: tenant(),
    store: text().$type<FileStoreName>().notNull(),
    touchedAt: time().notNull(),
  },
  table => [index('loose_files_touched_at').on(table.touchedAt)],
)

/** The bytes of files, in pieces, without a foreign key: a piece is written before its file is. */
export const fileChunks = pgTable(
  'file_chunks',
  {
    file: uuid().$type<FileId>().notNull(),
    number: integer().notNull(),
    tenant: tenant(),
    bytes: bytea().notNull(),
  },
  table => [primaryKey({ columns: [table.file, table.number] })],
)

/** What the steps of a turn have come to, so that its next attempt need not take them again. */
export const steps = pgTable(
  'steps',
  {
    turn: uuid()
      .$type<TurnId>()
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    name: text().notNull(),
    /** JSON, as the worker wrote it and reads it. */
    memory: text().notNull(),
  },
  table => [primaryKey({ columns: [table.turn, table.name] })],
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
  table => [primaryKey({ columns: [table.tenant, table.key] }), index('idempotency_keys_created_at').on(table.createdAt)],
)

/**
 * Changes of tasks and turns. Triggers write a row in the transaction of the change, so no change is without its row and no row without its change.
 * Readers take rows in the order of (`xid`, `seq`), and only those of transactions that are older than every running one: a row that is committed
 * late can then not appear before one that was read.
 */
export const feed = pgTable(
  'feed',
  {
    xid: bigint({ mode: 'number' }).notNull().default(sql`(pg_current_xact_id()::text)::bigint`),
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
    at: time().notNull().default(sql`now()`),
  },
  table => [primaryKey({ columns: [table.xid, table.seq] }), index('feed_tenant').on(table.tenant, table.xid, table.seq)],
)

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
    /** In the clear, because the server signs with it. */
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
    /** Null for the `onEnd` of a task, whose address and secret are in the task. */
    webhook: uuid().references(() => webhooks.id, { onDelete: 'cascade' }),
    task: uuid().$type<TaskId>().notNull(),
    type: text().$type<FeedEntryType>().notNull(),
    /** The body, the same for all attempts. */
    payload: text().notNull(),
    onEnd: json().$type<OnEnd>(),
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
