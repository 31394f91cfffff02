/** What becomes of files while their store is unavailable: nothing is visible, and what may have been written is removed when the store is back. */
import { randomUUID } from 'node:crypto'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/support/engines/database.ts'
import { type DatabaseHandle, openDatabase } from '../store/connection/database.ts'
import { files as fileRows, looseFiles } from '../store/schema.ts'
import type { FileStore } from './file-store.ts'
import { createFiles } from './files.ts'
import { createPostgresStore } from './postgres-store.ts'
import { createS3Store } from './s3-store.ts'

let database: DatabaseHandle

beforeAll(async () => {
  database = openDatabase({ url: (await createTestDatabase()).url, onError: () => {} })
})
afterAll(() => database.close())

const logger = { warn: () => {} } as unknown as FastifyBaseLogger
const closed = { url: 'http://127.0.0.1:1/bucket', region: 'us-east-1', accessKeyId: 'id', secretAccessKey: 'secret' }
const away = createS3Store(closed, async () => {})

function filesIn(store: 'postgres' | 's3', s3: FileStore, maxTenantBytes?: number) {
  const { db, databaseFor, filesFor } = database
  return createFiles({
    db,
    databaseFor,
    stores: { postgres: createPostgresStore(filesFor), s3 },
    store,
    logger,
    ...(maxTenantBytes && { maxTenantBytes }),
  })
}

const upload = (files: ReturnType<typeof createFiles>) =>
  files.write('default', { bytes: pieces(), size: 3, name: null, mimeType: 'text/plain', uploadedFor: null }, file =>
    database.db.transaction(tx => files.complete(tx, file)),
  )

async function* pieces(): AsyncGenerator<Buffer> {
  yield Buffer.from('abc')
}

test('an upload, and a download, to a store that is unavailable says so', async () => {
  await expect(upload(filesIn('s3', away))).rejects.toMatchObject({ code: 'dependency_unavailable' })
  expect(await database.db.select().from(fileRows)).toEqual([])
  const file = { ...(await upload(filesIn('postgres', away))), store: 's3' as const }
  const reading = filesIn('s3', away).read(file, null)[Symbol.asyncIterator]()
  await expect(reading.next()).rejects.toThrow(RivuletError)
})

test('what cannot be removed now is removed when its store is back, and holds up no other', async () => {
  await expect(upload(filesIn('s3', away))).rejects.toMatchObject({ code: 'dependency_unavailable' })
  const [left] = await database.db.select().from(looseFiles)
  expect(left).toMatchObject({ store: 's3' })
  await database.db.insert(looseFiles).values({ id: randomUUID(), tenant: 'default', store: 'postgres', touchedAt: new Date(1) })
  await filesIn('s3', away).sweep()
  expect((await database.db.select().from(looseFiles)).every(({ store }) => store === 's3')).toBe(true)
  const removed: string[] = []
  await filesIn('s3', { ...away, remove: async ({ id }) => void removed.push(id) }).sweep()
  expect(removed).toContain(left?.id)
  expect(await database.db.select().from(looseFiles)).toEqual([])
})

test.each(['postgres', 's3'] as const)('uploads to %s that come together take no more than their tenant may have', async store => {
  await database.db.delete(fileRows)
  await database.pool.query('delete from file_chunks')
  const stored = new Set<string>()
  const bucket: FileStore = {
    ...away,
    write: async ({ id }, bytes) => {
      for await (const _ of bytes) stored.add(id)
    },
    remove: async ({ id }) => void stored.delete(id),
  }
  const files = filesIn(store, bucket, 5 * 3)
  const uploads = await Promise.allSettled(Array.from({ length: 12 }, () => upload(files)))
  const rejected = uploads.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
  expect(rejected).toHaveLength(7)
  for (const error of rejected)
    expect(error).toMatchObject({ code: 'quota_exceeded', message: expect.stringContaining('MAX_FILE_BYTES_PER_TENANT') })
  expect(await database.db.select().from(fileRows)).toHaveLength(5)
  expect(await database.db.select().from(looseFiles)).toEqual([])
  const { rows: chunks } = await database.pool.query('select distinct file from file_chunks')
  expect(store === 's3' ? stored.size : chunks.length).toBe(5)
  const [first] = await database.db.select().from(fileRows)
  await files.remove('default', first?.id ?? '', async () => {})
  await upload(files)
  await expect(upload(files)).rejects.toMatchObject({ code: 'quota_exceeded' })
})
