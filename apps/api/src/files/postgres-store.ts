/** The bytes of files in Postgres: nothing else to install, and a backup of the database is a backup of the files. */
import { RivuletError } from '@rivulet/protocol'
import type { DatabaseHandle } from '../store/connection/database.ts'
import { chunkBytes, readChunk, removeChunks, writeChunk } from '../store/files/file-chunks.ts'
import type { ByteRange, FileKey, FileStore } from './file-store.ts'
import { inPiecesOf } from './pieces.ts'

export function createPostgresStore(filesFor: DatabaseHandle['filesFor']): FileStore {
  return { name: 'postgres', write, read, remove }

  async function write({ id, tenant }: FileKey, bytes: AsyncIterable<Buffer>): Promise<void> {
    let number = 0
    for await (const piece of inPiecesOf(chunkBytes, bytes)) await writeChunk(filesFor(tenant), tenant, id, number++, piece)
  }

  async function* read({ id, tenant }: FileKey, { start, end }: ByteRange): AsyncGenerator<Buffer> {
    for (let at = start; at < end; ) {
      const offset = at % chunkBytes
      const piece = await readChunk(filesFor(tenant), tenant, id, (at - offset) / chunkBytes)
      const part = piece?.subarray(offset, offset + end - at)
      if (!part || part.length === 0) throw new RivuletError('internal', 'A piece of a file is missing')
      yield part
      at += part.length
    }
  }

  async function remove({ id, tenant }: FileKey): Promise<void> {
    await removeChunks(filesFor(tenant), id)
  }
}
