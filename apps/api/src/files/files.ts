/**
 * Files: bytes in a store, and a row in Postgres that makes them visible once they are complete.
 *
 * The row of the upload comes first, then the bytes, then the file. Whatever fails in between leaves loose bytes with a row, which are removed at once,
 * or by the reconciler.
 */
import type { FileId, TaskId } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import { v7 as uuidv7 } from 'uuid'
import type { AuditNote } from '../store/access/audit.ts'
import type { Database, DatabaseHandle, Transaction } from '../store/connection/database.ts'
import type { Tenant } from '../store/connection/tenant.ts'
import {
  beginFile,
  completeFile,
  type FileRow,
  foldSums,
  forgetLooseFile,
  type LooseFile,
  loosenUnused,
  type NewFile,
  removeFile,
  requireRoom,
  seizeAbandoned,
  seizeUpload,
} from '../store/files/file-rows.ts'
import type { FileStoreName } from '../store/schema.ts'
import type { ByteRange, FileKey, FileStore } from './file-store.ts'
import { measure, verified } from './pieces.ts'

const sweptAtOnce = 100

type FilesDeps = {
  /** For what the server does of its own accord. */
  db: Database
  databaseFor: DatabaseHandle['databaseFor']
  stores: Partial<Record<FileStoreName, FileStore>>
  /** Where new files go. */
  store: FileStoreName
  /** What the files of one tenant may take. Default: no limit. */
  maxTenantBytes?: number
  logger: FastifyBaseLogger
}

export type FileSource = {
  bytes: AsyncIterable<Buffer>
  /** If the client has said it. */
  size: number | null
  name: string | null
  mimeType: string
  uploadedFor: TaskId | null
}

export type Files = ReturnType<typeof createFiles>

export function createFiles({ db, databaseFor, stores, store, maxTenantBytes = Number.POSITIVE_INFINITY, logger }: FilesDeps) {
  return { write, complete, requireRoom: requireRoomOf, read, discard, remove, sweep }

  /**
   * Stores the bytes. `commit` then makes the file visible, in a transaction of its own (`complete`). If either fails, the bytes are removed.
   */
  async function write<T>(tenant: Tenant, source: FileSource, commit: (file: NewFile) => Promise<T>): Promise<T> {
    const { bytes, size, name, mimeType, uploadedFor } = source
    const key = { id: uuidv7() as FileId, tenant }
    await beginFile(databaseFor(tenant), tenant, key.id, store)
    try {
      if (failpoint) await failpoint('file begun')
      const { passing, measured } = measure(bytes)
      await storeNamed(store).write(key, passing, size)
      if (failpoint) await failpoint('file written')
      return await commit({ ...key, ...measured(), name, mimeType, store, uploadedFor, isSpill: false, isUsed: false })
    } catch (error) {
      await discard(key)
      throw error
    }
  }

  function complete(tx: Transaction, file: NewFile): Promise<FileRow> {
    return completeFile(tx, file, maxTenantBytes)
  }

  /** Throws if a file of this size has no room now. For files that are completed without a quota. */
  async function requireRoomOf(tenant: Tenant, size: number): Promise<void> {
    if (Number.isFinite(maxTenantBytes)) await requireRoom(databaseFor(tenant), tenant, size, maxTenantBytes)
  }

  /** @param range null for the whole file, whose checksum is verified then */
  function read({ id, tenant, store: where, size, sha256 }: FileRow, range: ByteRange | null): AsyncIterable<Buffer> {
    const key = { id, tenant }
    return range ? storeNamed(where).read(key, range) : verified(storeNamed(where).read(key, { start: 0, end: size }), sha256)
  }

  /** Removes the bytes of an upload, unless it is complete. What cannot be removed now is left to the reconciler. */
  async function discard({ id, tenant }: FileKey): Promise<void> {
    await attempt(async () => {
      const loose = await seizeUpload(databaseFor(tenant), tenant, id)
      if (loose) await removeBytes(loose)
    })
  }

  async function remove(tenant: Tenant, id: FileId, note: AuditNote): Promise<void> {
    const loose = await removeFile(databaseFor(tenant), tenant, id, note)
    await attempt(() => removeBytes(loose))
  }

  /** For the reconciler: returns how many were removed. */
  async function sweep(): Promise<number> {
    await loosenUnused(db, sweptAtOnce)
    await foldSums(db, sweptAtOnce)
    const abandoned = await seizeAbandoned(db, sweptAtOnce)
    // A store that is unavailable is asked once, and holds up no other.
    const unavailable = new Set<FileStoreName>()
    let removed = 0
    for (const loose of abandoned) {
      if (unavailable.has(loose.store)) continue
      if (await attempt(() => removeBytes(loose))) removed += 1
      else unavailable.add(loose.store)
    }
    return removed
  }

  async function removeBytes(loose: LooseFile): Promise<void> {
    await storeNamed(loose.store).remove(loose)
    await forgetLooseFile(db, loose)
  }

  async function attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      logger.warn({ err: error }, 'could not remove the bytes of a file; the reconciler will')
      return false
    }
  }

  function storeNamed(name: FileStoreName): FileStore {
    const found = stores[name]
    if (!found) throw new Error(`This API has no store named ${name}: set FILES_S3_URL as it was when the file was stored`)
    return found
  }
}
