/**
 * The rows of files. A file is visible once it is complete: until then, and again after its removal, its bytes are loose, under a row of
 * `loose_files` that is committed before the first byte is written. So a crash at any place leaves a row that the reconciler finds.
 */
import type { File, FileId, TaskId } from '@rivulet/protocol'
import { RivuletError } from '@rivulet/protocol'
import { and, asc, desc, eq, exists, gt, inArray, isNotNull, lt, notExists, or, type SQL, sql } from 'drizzle-orm'
import type { AuditNote } from '../access/audit.ts'
import { type Database, sqlStateOf, type Transaction } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { lockQuota } from '../connection/quota-lock.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { type FileStoreName, fileSums, files, looseFiles, taskFiles, tasks } from '../schema.ts'

export type FileRow = typeof files.$inferSelect
export type LooseFile = typeof looseFiles.$inferSelect
export type NewFile = Omit<FileRow, 'createdAt'>

/** How long after its last piece an upload counts as cut. An upload that is waiting for its client has a shorter limit. */
export const abandonedMs = 120_000
const unusedMs = 24 * 3_600_000

export function toFile({ id, name, mimeType, size, sha256, createdAt }: FileRow): File {
  return { id, ...(name !== null && { name }), mimeType, size, sha256, createdAt: createdAt.toISOString() }
}

export async function beginFile(db: Database, tenant: Tenant, id: FileId, store: FileStoreName): Promise<void> {
  await db.insert(looseFiles).values({ id, tenant, store, touchedAt: sql`now()` })
}

/** Throws if the upload was seized meanwhile. */
export async function touchFile(db: Database, tenant: Tenant, id: FileId): Promise<void> {
  const touched = await db.update(looseFiles).set({ touchedAt: sql`now()` }).where(isUploading(tenant, id)).returning({ id: looseFiles.id })
  if (touched.length === 0) throw uploadIsGone()
}

export function uploadIsGone(): RivuletError {
  return new RivuletError('request_timeout', 'The upload took too long; send it again')
}

/** What the files of a tenant take. */
export async function sumFiles(db: Database | Transaction, tenant: Tenant): Promise<{ count: number; bytes: number }> {
  const sumOf = (column: typeof fileSums.count | typeof fileSums.bytes) => sql`coalesce(sum(${column}), 0)`.mapWith(Number)
  const [sums] = await db
    .select({ count: sumOf(fileSums.count), bytes: sumOf(fileSums.bytes) })
    .from(fileSums)
    .where(isOf(tenant, fileSums.tenant))
  return sums ?? { count: 0, bytes: 0 }
}

/** Makes one row of those of each tenant. */
export async function foldSums(db: Database, tenants: number): Promise<void> {
  await db.execute(sql`
    with several as (select tenant from ${fileSums} group by tenant having count(*) > 1 limit ${tenants}),
    folded as (delete from ${fileSums} where tenant in (select tenant from several) returning tenant, count, bytes)
    insert into ${fileSums} (tenant, count, bytes)
    select tenant, sum(count), sum(bytes) from folded group by tenant having sum(count) <> 0 or sum(bytes) <> 0`)
}

export async function requireRoom(db: Database | Transaction, tenant: Tenant, size: number, most: number): Promise<void> {
  const { bytes } = await sumFiles(db, tenant)
  if (bytes + size <= most) return
  const reason = `The files of a tenant may take at most ${most} bytes in all (MAX_FILE_BYTES_PER_TENANT)`
  throw new RivuletError('quota_exceeded', `${reason}; they take ${bytes}, and this one ${size}`)
}

/**
 * From here on the file is there. Throws if the tenant's files would take more than `most` bytes: uploads of a tenant wait for each other's commits, so
 * that together they do not.
 */
export async function completeFile(tx: Transaction, file: NewFile, most: number): Promise<FileRow> {
  if (Number.isFinite(most)) {
    await lockQuota(tx, file.tenant, 'files')
    await requireRoom(tx, file.tenant, file.size, most)
  }
  const loose = await tx.delete(looseFiles).where(isUploading(file.tenant, file.id)).returning({ id: looseFiles.id })
  if (loose.length === 0) throw uploadIsGone()
  const [row] = await tx.insert(files).values(file).returning()
  if (!row) throw new Error('The file was not inserted')
  return row
}

/** A row that was seized is never touched again: its bytes are being removed. */
const seizedAt = sql`'epoch'::timestamptz`

function isUploading(tenant: Tenant, id: FileId): SQL | undefined {
  return and(eq(looseFiles.id, id), isOf(tenant, looseFiles.tenant), gt(looseFiles.touchedAt, seizedAt))
}

/** @param task for a caller that may use only the files of one task */
export async function findFiles(
  db: Database | Transaction,
  tenant: Tenant,
  ids: readonly FileId[],
  task: TaskId | null = null,
): Promise<FileRow[]> {
  if (ids.length === 0) return []
  return db
    .select()
    .from(files)
    .where(and(inArray(files.id, [...ids]), isOf(tenant, files.tenant), task === null ? undefined : belongsTo(db, task)))
}

export async function getFile(db: Database, tenant: Tenant, id: FileId, task: TaskId | null = null): Promise<FileRow> {
  const [file] = await findFiles(db, tenant, [id], task)
  if (!file) throw fileNotFound(task)
  return file
}

type FilePage = { after?: FileId | undefined; limit: number; order: 'asc' | 'desc'; isUsed?: true }

/** The files that callers or workers have uploaded, by their ids, which grow with time. `isUsed`: only those that a task or a schedule has referred to. */
export async function listFiles(db: Database, tenant: Tenant, { after, limit, order, isUsed }: FilePage): Promise<FileRow[]> {
  const [behind, by] = order === 'asc' ? ([gt, asc] as const) : ([lt, desc] as const)
  const isBehind = after === undefined ? undefined : behind(files.id, after)
  return db
    .select()
    .from(files)
    .where(and(isOf(tenant, files.tenant), eq(files.isSpill, false), isUsed && eq(files.isUsed, true), isBehind))
    .orderBy(by(files.id))
    .limit(limit)
}

/** The same for an unknown file, for one of another tenant, and for one of another task. */
function fileNotFound(task: TaskId | null = null): RivuletError {
  return new RivuletError('not_found', task === null ? 'No such file' : 'The task refers to no such file')
}

function belongsTo(db: Database | Transaction, task: TaskId): SQL | undefined {
  return or(eq(files.uploadedFor, task), exists(references(db, eq(taskFiles.task, task))))
}

function references(db: Database | Transaction, condition?: SQL) {
  return db
    .select({ file: taskFiles.file })
    .from(taskFiles)
    .where(and(eq(taskFiles.file, files.id), condition))
}

/** Removes a file that no task and no schedule refers to. Its bytes are loose then. */
export async function removeFile(db: Database, tenant: Tenant, id: FileId, note: AuditNote): Promise<LooseFile> {
  try {
    return await db.transaction(async tx => {
      const [loose] = await loosen(tx, and(eq(files.id, id), isOf(tenant, files.tenant)))
      if (!loose) throw fileNotFound()
      await note(tx)
      return loose
    })
  } catch (error) {
    // The key of a reference, which may have been added in the midst of this.
    if (sqlStateOf(error) !== '23503') throw error
    throw new RivuletError('file_in_use', 'A task or a schedule refers to this file; it is removed with the last one that does')
  }
}

async function loosen(tx: Transaction, which: SQL | undefined): Promise<LooseFile[]> {
  const removed = await tx.delete(files).where(which).returning()
  if (removed.length === 0) return []
  const rows = removed.map(({ id, tenant, store }) => ({ id, tenant, store, touchedAt: new Date(0) }))
  return tx.insert(looseFiles).values(rows).returning()
}

/** Files that no task and no schedule has referred to within a day, or before the task that they were uploaded for was removed. */
export async function loosenUnused(db: Database, limit: number): Promise<number> {
  const task = db.select({ id: tasks.id }).from(tasks).where(eq(tasks.id, files.uploadedFor))
  const isLeft = and(isNotNull(files.uploadedFor), notExists(task))
  const isUnused = and(eq(files.isUsed, false), or(isLeft, lt(files.createdAt, msAgo(unusedMs))), notExists(references(db)))
  return db.transaction(async tx => {
    const old = await tx.select({ id: files.id }).from(files).where(isUnused).limit(limit).for('update', { skipLocked: true })
    if (old.length === 0) return 0
    return (
      await loosen(
        tx,
        and(
          inArray(
            files.id,
            old.map(({ id }) => id),
          ),
          isUnused,
        ),
      )
    ).length
  })
}

/** Bytes to remove: of removed files, and of uploads that were cut. An upload that was only slow can neither go on nor be completed from here on. */
export async function seizeAbandoned(db: Database, limit: number): Promise<LooseFile[]> {
  const old = db
    .select({ id: looseFiles.id })
    .from(looseFiles)
    .where(lt(looseFiles.touchedAt, msAgo(abandonedMs)))
    .orderBy(asc(looseFiles.touchedAt))
    .limit(limit)
    .for('update', { skipLocked: true })
  return db.update(looseFiles).set({ touchedAt: seizedAt }).where(inArray(looseFiles.id, old)).returning()
}

/** The same for one upload that has failed. Null if it is complete, or seized already. */
export async function seizeUpload(db: Database, tenant: Tenant, id: FileId): Promise<LooseFile | null> {
  const [loose] = await db.update(looseFiles).set({ touchedAt: seizedAt }).where(isUploading(tenant, id)).returning()
  return loose ?? null
}

/** Once the bytes are gone. */
export async function forgetLooseFile(db: Database, { id, tenant }: Pick<LooseFile, 'id' | 'tenant'>): Promise<void> {
  await db.delete(looseFiles).where(and(eq(looseFiles.id, id), isOf(tenant, looseFiles.tenant)))
}
