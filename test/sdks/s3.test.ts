/** Files in a bucket of a real S3 server, which checks our signatures: whole, in parts, by ranges, cut, removed, and while the server is unavailable. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { File } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { mark, markedTask, placesWithMark } from '../support/platform/marked-task.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { sendRaw } from '../support/viewers/raw-http.ts'

const MiB = 1024 * 1024
/** It has no types of its own. */
type S3Server = { run(): Promise<unknown>; close(): Promise<void> }
const S3rver: new (options: object) => S3Server = createRequire(import.meta.url)('@20minutes/s3rver')

const directory = mkdtempSync(join(tmpdir(), 'rivulet-s3-'))

let port: string
let server: S3Server
let platform: Platform

beforeAll(async () => {
  port = await freePort()
  server = await startS3()
  platform = await startPlatform({ workers: 0, env: bucket({}) })
})
afterAll(async () => {
  await platform.close()
  await server.close()
  rmSync(directory, { recursive: true })
})

async function startS3(): Promise<S3Server> {
  const started = new S3rver({
    address: '127.0.0.1',
    port: Number(port),
    silent: true,
    directory,
    configureBuckets: [{ name: 'files', configs: [] }],
  })
  await started.run()
  return started
}

/** Its only key. */
function bucket({ secret = 'S3RVER' }): Record<string, string> {
  return { FILES_S3_URL: `http://127.0.0.1:${port}/files`, FILES_S3_ACCESS_KEY_ID: 'S3RVER', FILES_S3_SECRET_ACCESS_KEY: secret }
}

/** What the server keeps, names included: objects, and what is beside them. */
function inBucket(text: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name))
  return paths.filter(path => path.includes(text) || readFileSync(path).includes(text))
}

/** The names of the objects in the bucket, as the server keeps them. */
function objects(): string[] {
  const names = readdirSync(join(directory, 'files'), { recursive: true, encoding: 'utf8' })
  return names.filter(name => name.endsWith('._S3rver_object'))
}

async function upload(bytes: Buffer, isLengthKnown: boolean, url = platform.url): Promise<Response> {
  const body = isLengthKnown ? new Uint8Array(bytes) : new Blob([new Uint8Array(bytes)]).stream()
  return fetch(`${url}/v1/files`, { method: 'POST', body, duplex: 'half' } as RequestInit)
}

async function stored(bytes: Buffer, isLengthKnown = true): Promise<File> {
  const response = await upload(bytes, isLengthKnown)
  expect(response.status).toBe(201)
  return ((await response.json()) as { file: File }).file
}

async function download(id: string, headers: Record<string, string> = {}): Promise<Buffer> {
  return Buffer.from(await (await fetch(`${platform.url}/v1/files/${id}`, { headers })).arrayBuffer())
}

const remove = async (id: string) => (await fetch(`${platform.url}/v1/files/${id}`, { method: 'DELETE' })).status

describe.each([true, false])('an upload whose length is known: %s', isLengthKnown => {
  // A part has 5 MiB.
  test.each([0, 1, 5 * MiB - 1, 5 * MiB, 5 * MiB + 1, 12 * MiB])('of %i bytes is one object, and is returned as it was', async size => {
    const before = objects().length
    const bytes = randomBytes(size)
    const { id, sha256 } = await stored(bytes, isLengthKnown)
    expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(objects().filter(name => name.includes(id))).toHaveLength(1)
    expect((await download(id)).equals(bytes)).toBe(true)
    if (size > 10) expect((await download(id, { range: 'bytes=3-9' })).equals(bytes.subarray(3, 10))).toBe(true)
    expect(await remove(id)).toBe(204)
    expect(objects()).toHaveLength(before)
  })
})

test.each([2 * MiB, 11 * MiB])('an upload that is cut after %i bytes leaves no object', async size => {
  const before = objects()
  const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${20 * MiB}\r\n\r\n`
  await sendRaw(platform.url, [head, Buffer.alloc(size)], { leavesAtOnce: true })
  await until('it is forgotten', async () => (await platform.pg.query('select from loose_files')).rows.length === 0)
  expect(objects()).toEqual(before)
})

test('a server that refuses the signature is a store that is unavailable', async () => {
  const before = objects()
  const { url } = await platform.startApi({ env: bucket({ secret: 'another' }) })
  expect((await upload(randomBytes(3), true, url)).status).toBe(503)
  expect(objects()).toEqual(before)
})

test('while the server is unavailable, uploads and downloads get 503; what is deleted meanwhile goes when it is back', async () => {
  const [kept, gone] = [await stored(randomBytes(10)), await stored(randomBytes(10))]
  await server.close()
  expect((await upload(randomBytes(10), true)).status).toBe(503)
  expect((await upload(randomBytes(6 * MiB), false)).status).toBe(503)
  expect((await fetch(`${platform.url}/v1/files/${kept.id}`)).status).toBe(503)
  // Again where the API has closed a connection whose upload it did not read.
  await until('it is deleted', () =>
    remove(gone.id).then(
      status => status === 204,
      () => false,
    ),
  )
  server = await startS3()
  await until('it is removed', () => !objects().some(name => name.includes(gone.id)))
  expect(await download(kept.id)).toHaveLength(10)
})

test('after a task is removed, neither Postgres, nor Redis, nor the bucket has anything of it', async () => {
  const marking = await startPlatform({ env: { ...bucket({}), SECRETS_KEY: 'a key for the secrets of this test' } })
  try {
    const id = await markedTask(marking)
    expect(await placesWithMark(marking)).toEqual(expect.arrayContaining(['table tasks', 'table files']))
    await until('two uploads and a value that was too large for its message are there', () => inBucket(mark).length >= 3)
    const { rows } = await marking.pg.query('select id from files')
    expect((await marking.client.remove(id)).status).toBe(204)
    await expect.poll(() => placesWithMark(marking), { interval: 250 }).toEqual([])
    await expect.poll(() => inBucket(mark), { interval: 250 }).toEqual([])
    expect(rows.flatMap(row => inBucket(row.id))).toEqual([])
  } finally {
    await marking.close()
  }
})
