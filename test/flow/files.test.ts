/** Files over the wire: uploads, downloads, ranges, and everything that a client can get wrong; nothing of a refused upload is left behind. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import type { File } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply, Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { sendRaw } from '../support/viewers/raw-http.ts'

const KiB = 1024
const MiB = 1024 * KiB
const maxBytes = 3 * MiB

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: { MAX_FILE_BYTES: String(maxBytes), MAX_VIEWER_STALL_MS: '5000' } })
})
afterAll(() => platform.close())

type Uploaded = Reply<{ file: File }>

function upload(body: Buffer | ReadableStream, headers: Record<string, string> = {}): Promise<Uploaded> {
  return platform.client.send('POST', '/v1/files', { body, headers, duplex: 'half' } as RequestInit)
}

async function stored(bytes: Buffer, headers: Record<string, string> = {}): Promise<File> {
  const { status, body } = await upload(bytes, headers)
  expect([status, body]).toEqual([201, { file: expect.anything() }])
  return body.file
}

async function download(id: string, headers: Record<string, string> = {}): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
  const response = await fetch(`${platform.url}/v1/files/${id}`, { headers })
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

const codeOf = ({ status, body }: Reply) => [status, (body as ErrorReply).error?.code]
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Rows of everything that an upload may leave. */
async function leftovers(): Promise<number[]> {
  const { rows } = await platform.pg.query(
    'select (select count(*) from files)::int as files, (select count(*) from loose_files)::int as loose, (select count(*) from file_chunks)::int as chunks',
  )
  return Object.values(rows[0])
}

describe('an upload', () => {
  test.each([0, 1, 64 * KiB, 256 * KiB - 1, 256 * KiB, 256 * KiB + 1, maxBytes])('of %i bytes is returned as it was', async size => {
    const bytes = randomBytes(size)
    const file = await stored(bytes, { 'content-type': 'image/png', 'x-filename': 'a picture.png' })
    const told = { name: 'a picture.png', mimeType: 'image/png', size, sha256: sha256(bytes) }
    expect(file).toEqual({ id: expect.any(String), createdAt: expect.any(String), ...told })
    const got = await download(file.id)
    expect([got.status, got.bytes.equals(bytes), got.headers.get('content-length')]).toEqual([200, true, String(size)])
  })

  test('whose length is not known is taken, and so is one without a type or a name', async () => {
    const bytes = randomBytes(700 * KiB)
    const { body } = await upload(new Blob([new Uint8Array(bytes)]).stream())
    expect(body.file).toMatchObject({ mimeType: 'application/octet-stream', size: bytes.length, sha256: sha256(bytes) })
    expect(body.file.name).toBeUndefined()
  })

  test('of JSON, broken or not, is bytes like any other', async () => {
    const file = await stored(Buffer.from('{"not": json'), { 'content-type': 'application/json' })
    expect((await download(file.id)).bytes.toString()).toBe('{"not": json')
  })

  test('twice of the same bytes makes two files; under one Idempotency-Key, it makes one', async () => {
    const bytes = randomBytes(1_000)
    const [first, second] = [await stored(bytes), await stored(bytes)]
    expect([second.sha256, second.id === first.id]).toEqual([first.sha256, false])
    const headers = { 'idempotency-key': `once-${first.id}` }
    const before = await leftovers()
    const [once, again] = [await upload(bytes, headers), await upload(bytes, headers)]
    expect(again.body).toEqual(once.body)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(codeOf(await upload(randomBytes(1_000), headers))).toEqual([422, 'idempotency_key_reused'])
    expect(await leftovers()).toEqual(before.map((count, i) => count + (i === 1 ? 0 : 1)))
  })

  test('whose checksum the client has sent is compared with it', async () => {
    const bytes = randomBytes(1_000)
    const digest = (of: Buffer) => ({ 'content-digest': `sha-256=:${createHash('sha256').update(of).digest('base64')}:` })
    expect((await upload(bytes, digest(bytes))).status).toBe(201)
    const before = await leftovers()
    expect((await upload(bytes, digest(randomBytes(3)))).body).toMatchObject({
      error: { code: 'validation_failed', details: [{ path: '/headers/content-digest' }] },
    })
    expect(codeOf(await upload(bytes, { 'content-digest': 'md5=:xx:' }))).toEqual([400, 'validation_failed'])
    expect(await leftovers()).toEqual(before)
  })

  test("has a name in any script, by RFC 8187, and it comes back in the download's header", async () => {
    const name = 'naïve 文件 "é".pdf'
    const file = await stored(randomBytes(3), { 'x-filename': `UTF-8''${encodeURIComponent(name)}` })
    expect(file.name).toBe(name)
    const { headers } = await download(file.id)
    expect(headers.get('content-disposition')).toBe(`attachment; filename="na_ve __ ___.pdf"; filename*=UTF-8''${encodeURIComponent(name)}`)
  })

  test.each([
    ['..', '..'],
    ['a path', '../../etc/passwd'],
    ['a path of Windows', '..\\boot.ini'],
    ['a line break', "UTF-8''a%0d%0aset-cookie:x"],
    ['1,000 characters', 'a'.repeat(1_000)],
    ['nothing', ''],
    ['a broken escape', "UTF-8''%ff"],
    ['text that turns around', "UTF-8''fdp.%E2%80%AEexe"],
  ])('with %s for a name is refused', async (_, name) => {
    const before = await leftovers()
    expect((await upload(randomBytes(3), { 'x-filename': name })).body).toMatchObject({
      error: { code: 'validation_failed', details: [{ path: '/headers/x-filename' }] },
    })
    expect(await leftovers()).toEqual(before)
  })

  test('that is too large is refused before it is read, by its length or where it exceeds the limit', async () => {
    const before = await leftovers()
    const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${maxBytes + 1}\r\n\r\n`
    const { replies } = await sendRaw(platform.url, [head])
    expect([replies[0]?.status, replies[0]?.body]).toEqual([413, expect.stringContaining('MAX_FILE_BYTES')])
    expect(codeOf(await upload(new Blob([new Uint8Array(maxBytes + 1)]).stream()))).toEqual([413, 'body_too_large'])
    expect(codeOf(await upload(endless()))).toEqual([413, 'body_too_large'])
    expect(await leftovers()).toEqual(before)
  })

  test('that is cut, or shorter than its length says, leaves nothing', async () => {
    const before = await leftovers()
    const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${2 * MiB}\r\n\r\n`
    await sendRaw(platform.url, [head, Buffer.alloc(MiB)], { leavesAtOnce: true })
    await until('it is gone', async () => JSON.stringify(await leftovers()) === JSON.stringify(before))
    // One that says nothing more keeps its place for MAX_VIEWER_STALL_MS.
    for (const length of [2 * MiB, KiB]) {
      const { replies } = await sendRaw(platform.url, [head.replace(String(2 * MiB), String(length)), Buffer.alloc(length / 2)])
      expect([replies[0]?.status, replies[0]?.body]).toEqual([408, expect.stringContaining('request_timeout')])
    }
    expect(await leftovers()).toEqual(before)
  })

  test('as a form that is refused gets the reason, also before the form was read to its end', async () => {
    const before = await leftovers()
    const send = (parts: string) => {
      const headers = { 'content-type': 'multipart/form-data; boundary=cut' }
      return platform.client.send('POST', '/openai/v1/files', { body: parts, headers })
    }
    const part = (disposition: string) => `--cut\r\ncontent-disposition: form-data; ${disposition}\r\n\r\nbytes\r\n--cut--\r\n`
    expect(codeOf(await send(part('name="file"; filename="../x"')))).toEqual([400, 'validation_failed'])
    expect(codeOf(await send(part('name="other"; filename="x"')))).toEqual([400, 'validation_failed'])
    expect(codeOf(await send(`--cut\r\n${'a: b\r\n'.repeat(20_000)}`))).toEqual([400, 'bad_request'])
    expect(codeOf(await send(''))).toEqual([400, 'bad_request'])
    const file = (letter: string, size: number) =>
      `--cut\r\ncontent-disposition: form-data; name="file"; filename="${letter}"\r\n\r\n${letter.repeat(size)}\r\n`
    expect(codeOf(await send(`${file('a', 100 * KiB)}${file('b', 400 * KiB)}--cut--\r\n`))).toEqual([400, 'bad_request'])
    expect(await leftovers()).toEqual(before)
  })

  test('that takes longer than other requests may is taken, as long as it goes on', async () => {
    // Twelve seconds: a request that is no upload has ten.
    const sent = httpRequest(`${platform.url}/v1/files`, { method: 'POST' })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      sent.on('response', response => resolve(response.statusCode)).on('error', reject)
    })
    for (let i = 0; i < 24; i += 1) {
      sent.write(Buffer.alloc(80 * KiB))
      await new Promise(resolve => setTimeout(resolve, 500))
    }
    sent.end()
    expect(await answered).toBe(201)
  })

  test('with an invalid type, or compressed, is refused', async () => {
    expect((await upload(randomBytes(3), { 'content-type': 'picture' })).status).toBe(415)
    expect(codeOf(await upload(randomBytes(3), { 'content-encoding': 'gzip' }))).toEqual([415, 'unsupported_media_type'])
    expect(codeOf(await upload(randomBytes(3), { 'content-type': `a/${'b'.repeat(300)}` }))).toEqual([400, 'validation_failed'])
  })
})

describe('a download', () => {
  const bytes = randomBytes(600 * KiB)
  let file: File
  beforeAll(async () => {
    file = await stored(bytes, { 'content-type': 'text/html', 'x-filename': 'page.html' })
  })

  test('is never executed, whatever its type says', async () => {
    const { headers } = await download(file.id)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html',
      'content-disposition': expect.stringMatching(/^attachment;/),
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^sandbox;/),
      'x-frame-options': 'DENY',
      etag: `"${file.sha256}"`,
      'accept-ranges': 'bytes',
    })
  })

  test.each([
    ['bytes=0-0', 0, 1],
    ['bytes=1-', 1, bytes.length],
    ['bytes=-5', bytes.length - 5, bytes.length],
    [`bytes=-${10 * bytes.length}`, 0, bytes.length],
    [`bytes=${256 * KiB - 1}-${256 * KiB}`, 256 * KiB - 1, 256 * KiB + 1],
    [`bytes=100-${10 * bytes.length}`, 100, bytes.length],
  ])('of %s returns that part', async (range, start, end) => {
    const got = await download(file.id, { range })
    expect([got.status, got.headers.get('content-range'), got.headers.get('content-length')]).toEqual([
      206,
      `bytes ${start}-${end - 1}/${bytes.length}`,
      String(end - start),
    ])
    expect(got.bytes.equals(bytes.subarray(start, end))).toBe(true)
  })

  test.each(['bytes=0-1,3-4', 'lines=0-1', 'bytes=a-b', 'bytes=5-2', 'bytes=-'])('of %s returns the whole file', async range => {
    const got = await download(file.id, { range })
    expect([got.status, got.bytes.length]).toEqual([200, bytes.length])
  })

  test.each([`bytes=${600 * KiB}-`, 'bytes=-0', 'bytes=999999999-'])('of %s is refused', async range => {
    const got = await download(file.id, { range })
    expect([got.status, got.headers.get('content-range')]).toEqual([416, `bytes */${bytes.length}`])
    expect(JSON.parse(got.bytes.toString())).toMatchObject({ error: { code: 'range_not_satisfiable' } })
  })

  test('that goes on where it was cut needs the same file', async () => {
    const range = 'bytes=1-2'
    expect((await download(file.id, { range, 'if-range': `"${file.sha256}"` })).status).toBe(206)
    expect((await download(file.id, { range, 'if-range': '"another"' })).status).toBe(200)
  })

  test('with HEAD has the status and the headers of GET, and no body', async () => {
    const head = (headers: Record<string, string> = {}) => fetch(`${platform.url}/v1/files/${file.id}`, { method: 'HEAD', headers })
    const { status, headers, bytes: whole } = await download(file.id)
    const got = await head()
    expect([got.status, whole.length, (await got.arrayBuffer()).byteLength]).toEqual([status, bytes.length, 0])
    const ofConnection = ['date', 'x-request-id', 'connection', 'keep-alive']
    const ofFile = (all: Headers) => Object.fromEntries([...all].filter(([name]) => !ofConnection.includes(name)))
    expect(ofFile(got.headers)).toEqual(ofFile(headers))
    const known = await head({ 'if-none-match': `"${file.sha256}"` })
    expect([known.status, (await fetch(`${platform.url}/v1/files/${randomUUID()}`, { method: 'HEAD' })).status]).toEqual([304, 404])
  })

  test('of what the client has already has no body', async () => {
    for (const known of [`"${file.sha256}"`, `"x", W/"${file.sha256}"`, '*']) {
      const got = await download(file.id, { 'if-none-match': known })
      expect([known, got.status, got.bytes.length]).toEqual([known, 304, 0])
    }
    expect((await download(file.id, { 'if-none-match': '"x"' })).status).toBe(200)
  })

  test('of bytes that are damaged breaks off, and never looks whole', async () => {
    const damaged = await stored(randomBytes(900 * KiB))
    await platform.pg.query('update file_chunks set bytes = set_byte(bytes, 7, get_byte(bytes, 7) # 255) where file = $1 and number = 0', [
      damaged.id,
    ])
    await expect(download(damaged.id)).rejects.toThrow()
    await platform.pg.query('delete from file_chunks where file = $1 and number = 2', [damaged.id])
    await expect(download(damaged.id)).rejects.toThrow()
  })

  test('of an unknown id, and of what is no id, is refused', async () => {
    expect((await download('0198a3a0-0000-7000-8000-000000000000')).status).toBe(404)
    expect((await download('..%2f..%2fetc%2fpasswd')).status).toBe(400)
    expect((await download(file.id.toUpperCase())).status).toBe(200)
  })
})

describe('a file', () => {
  test('that is deleted is gone, with its bytes', async () => {
    const before = await leftovers()
    const { id } = await stored(randomBytes(MiB))
    expect((await platform.client.send('DELETE', `/v1/files/${id}`)).status).toBe(204)
    expect((await download(id)).status).toBe(404)
    expect(codeOf(await platform.client.send('DELETE', `/v1/files/${id}`))).toEqual([404, 'not_found'])
    expect(await leftovers()).toEqual(before)
  })

  test('that no task refers to is removed after 24 h', async () => {
    const [old, young] = [await stored(randomBytes(MiB)), await stored(randomBytes(1))]
    await platform.pg.query("update files set created_at = now() - interval '25 hours' where id = $1", [old.id])
    await until('it is gone', async () => (await download(old.id)).status === 404)
    await until(
      'so are its bytes',
      async () => (await platform.pg.query('select from file_chunks where file = $1', [old.id])).rows.length === 0,
    )
    expect((await download(young.id)).status).toBe(200)
  })

  test('whose upload a crash has cut is removed by the reconciler', async () => {
    const id = '0198a3a0-0000-7000-8000-00000000dead'
    await platform.pg.query("insert into loose_files values ($1, 'default', 'postgres', now() - interval '3 minutes')", [id])
    await platform.pg.query("insert into file_chunks values ($1, 0, 'default', 'abc')", [id])
    await until('it is gone', async () => {
      const { rows } = await platform.pg.query('select from loose_files where id = $1 union all select from file_chunks where file = $1', [
        id,
      ])
      return rows.length === 0
    })
  })
})

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(64 * KiB)) })
}
