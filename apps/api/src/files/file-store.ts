/** Where the bytes of files are. A store knows bytes by the id of their file and its tenant; everything else about a file is in Postgres. */
import type { FileId } from '@rivulet/protocol'
import type { Tenant } from '../store/connection/tenant.ts'
import type { FileStoreName } from '../store/schema.ts'

export type FileKey = { id: FileId; tenant: Tenant }

/** From `start`, up to but not including `end`. */
export type ByteRange = { start: number; end: number }

export type FileStore = {
  name: FileStoreName
  /**
   * Writes all pieces, one after the other, and asks for the next one only when it can take it. The row of the upload is touched at least every
   * minute. A rejection may leave bytes behind, which `remove` removes.
   * @param size if the client has said it
   */
  write(key: FileKey, pieces: AsyncIterable<Buffer>, size: number | null): Promise<void>
  read(key: FileKey, range: ByteRange): AsyncIterable<Buffer>
  /** Also for bytes that are not there, or not all of them. */
  remove(key: FileKey): Promise<void>
}
