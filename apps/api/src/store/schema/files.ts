/** Files, their bytes, and the tasks and schedules that refer to them. */
import type { FileId, TaskId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { bigint, boolean, customType, foreignKey, index, integer, pgTable, primaryKey, text, unique, uuid } from 'drizzle-orm/pg-core'
import { tenant, time } from './columns.ts'
import { schedules } from './schedules.ts'
import { tasks } from './tasks.ts'

export type FileStoreName = 'postgres' | 's3'

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' })

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
    /** Whether a task or a schedule has ever referred to it. One that none refers to is removed after a day. */
    isUsed: boolean().notNull().default(false),
    createdAt: time().notNull().default(sql`now()`),
  },
  table => [
    unique('files_tenant_id').on(table.tenant, table.id),
    index('files_unused').on(table.createdAt).where(sql`not ${table.isUsed}`),
  ],
)

/**
 * What the files of a tenant take, as the sum of its rows. Triggers add a row for each statement that adds or removes files, and the reconciler makes one of
 * them: a row that every change would lock is a queue, and a deadlock of two tasks that are removed.
 */
export const fileSums = pgTable(
  'file_sums',
  {
    id: uuid().primaryKey().default(sql`gen_random_uuid()`),
    tenant: tenant(),
    count: bigint({ mode: 'number' }).notNull(),
    bytes: bigint({ mode: 'number' }).notNull(),
  },
  table => [index('file_sums_tenant').on(table.tenant)],
)

/** Which tasks refer to which files. When a row goes, a trigger removes the file that no other task and no schedule refers to. */
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

/** The same for the inputs of schedules. */
export const scheduleFiles = pgTable(
  'schedule_files',
  {
    schedule: uuid()
      .notNull()
      .references(() => schedules.id, { onDelete: 'cascade' }),
    tenant: tenant(),
    file: uuid().$type<FileId>().notNull(),
  },
  table => [
    primaryKey({ columns: [table.schedule, table.file] }),
    index('schedule_files_file').on(table.file),
    foreignKey({ columns: [table.tenant, table.file], foreignColumns: [files.tenant, files.id], name: 'schedule_files_files' }),
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
