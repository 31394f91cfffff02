/**
 * The bytes of files in Postgres, in pieces of one size. Each piece is a statement of its own, so neither an upload nor a download holds a
 * connection, a transaction or more than one piece in memory.
 */
import type { FileId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { everyTenant, type Tenant } from '../connection/tenant.ts'
import { fileChunks } from '../schema.ts'
import { uploadIsGone } from './file-rows.ts'

/** Of every piece but the last. Fixed, because stored files have it. */
export const chunkBytes = 256 * 1024
/** Pieces that one statement removes. */
const removedAtOnce = 100

/** Only while the upload is under way: the row of the upload is touched in the same statement. */
export async function writeChunk(db: Database, tenant: Tenant, file: FileId, number: number, bytes: Buffer): Promise<void> {
  const { rowCount } = await db.$client.query({ name: 'write_chunk', text: writeText, values: [file, tenant, number, bytes] })
  if (rowCount === 0) throw uploadIsGone()
}

/** $1 file, $2 tenant, $3 number, $4 bytes. */
const writeText = `
with touched as (
  update loose_files set touched_at = now() where id = $1 and tenant = $2 and touched_at > 'epoch' returning id
)
insert into file_chunks (file, number, tenant, bytes) select id, $3, $2, $4 from touched`

/** Null if the file does not exist. */
export async function readChunk(db: Database, tenant: Tenant, file: FileId, number: number): Promise<Buffer | null> {
  const { rows } = await db.$client.query({ name: 'read_chunk', text: readText, values: [file, tenant, number] })
  const [found] = rows as { bytes: string }[]
  return found ? Buffer.from(found.bytes, 'base64') : null
}

/** $1 file, $2 tenant, $3 number. In base64, because the driver reads results as text, and Postgres' own form has two digits for each byte. */
const readText = `select encode(bytes, 'base64') as bytes from file_chunks where file = $1 and $2 in (tenant, '${everyTenant}') and number = $3`

export async function removeChunks(db: Database, file: FileId): Promise<void> {
  const some = sql`select ${fileChunks.number} from ${fileChunks} where ${fileChunks.file} = ${file} order by ${fileChunks.number} desc limit ${removedAtOnce}`
  for (;;) {
    const { rowCount } = await db.execute(
      sql`delete from ${fileChunks} where ${fileChunks.file} = ${file} and ${fileChunks.number} in (${some})`,
    )
    if ((rowCount ?? 0) < removedAtOnce) return
  }
}
