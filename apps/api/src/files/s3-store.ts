/**
 * The bytes of files in a bucket of an S3-compatible server, one object for each file, under `<tenant>/<id>`.
 *
 * A file of known length is one streamed PUT. S3 takes no body of unknown length, so such a file goes up in parts of 5 MiB, the least that S3 allows; one that
 * has less is a PUT, too. Parts of an upload that a crash has cut are not visible, and stay until a lifecycle rule of the bucket removes them.
 */
import type { IncomingMessage } from 'node:http'
import { RivuletError } from '@rivulet/protocol'
import type { ByteRange, FileKey, FileStore } from './file-store.ts'
import { inPiecesOf } from './pieces.ts'
import { createS3Requests, type S3Request, type S3Settings, unavailable } from './s3-request.ts'

const partBytes = 5 * 1024 * 1024
const touchMs = 20_000

/** @param touch of the row of an upload, again and again while it lasts */
export function createS3Store(settings: S3Settings, touch: (key: FileKey) => Promise<void>): FileStore {
  const send = createS3Requests(settings)
  return { name: 's3', write, read, remove }

  async function write(key: FileKey, bytes: AsyncIterable<Buffer>, size: number | null): Promise<void> {
    const source = touching(key, bytes)
    if (size !== null) return put(key, source, size)
    const parts = inPiecesOf(partBytes, source)[Symbol.asyncIterator]()
    const first = await parts.next()
    if (first.done || first.value.length < partBytes) return put(key, first.done ? Buffer.alloc(0) : first.value, first.value?.length ?? 0)
    await putParts(key, first.value, parts)
  }

  async function put(key: FileKey, bytes: AsyncIterable<Buffer> | Buffer, size: number): Promise<void> {
    await done({ method: 'PUT', path: pathOf(key), body: { bytes, size } })
  }

  async function putParts(key: FileKey, first: Buffer, rest: AsyncIterator<Buffer>): Promise<void> {
    const path = pathOf(key)
    const begun = await done({ method: 'POST', path, query: { uploads: '' } })
    const [, uploadId = ''] = /<UploadId>([^<]+)<\/UploadId>/.exec(begun.text) ?? []
    try {
      const etags: string[] = []
      for (let part: Buffer | null = first; part; ) {
        const query = { partNumber: String(etags.length + 1), uploadId }
        const { headers } = await done({ method: 'PUT', path, query, body: { bytes: part, size: part.length } })
        etags.push(headers.etag ?? '')
        const next = await rest.next()
        part = next.done ? null : next.value
      }
      const list = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag.replaceAll('"', '&quot;')}</ETag></Part>`)
      const xml = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
      const { text } = await done({ method: 'POST', path, query: { uploadId }, body: { bytes: xml, size: xml.length } })
      // This one call can fail after its 200.
      if (text.includes('<Error>')) unavailable(new Error('The parts could not be joined'))
    } catch (error) {
      await done({ method: 'DELETE', path, query: { uploadId } }).catch(() => {})
      throw error
    }
  }

  async function* read(key: FileKey, { start, end }: ByteRange): AsyncGenerator<Buffer> {
    if (start >= end) return
    const response = await send({ method: 'GET', path: pathOf(key), headers: { range: `bytes=${start}-${end - 1}` } })
    if (response.statusCode === 404) throw new RivuletError('internal', 'The bytes of a file are missing in the bucket')
    if (response.statusCode !== 206) await refused(response)
    yield* response as AsyncIterable<Buffer>
  }

  async function remove(key: FileKey): Promise<void> {
    await done({ method: 'DELETE', path: pathOf(key) })
  }

  async function done(request: S3Request): Promise<{ headers: IncomingMessage['headers']; text: string }> {
    const response = await send(request)
    if ((response.statusCode ?? 500) >= 300 && !(request.method === 'DELETE' && response.statusCode === 404)) await refused(response)
    return { headers: response.headers, text: await textOf(response) }
  }

  async function refused(response: IncomingMessage): Promise<never> {
    const [, code = ''] = /<Code>(\w+)<\/Code>/.exec(await textOf(response)) ?? []
    return unavailable(new Error(`The store responded ${response.statusCode} ${code}`.trim()))
  }

  async function* touching(key: FileKey, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let touchedAt = performance.now()
    for await (const piece of bytes) {
      if (performance.now() - touchedAt > touchMs) {
        await touch(key)
        touchedAt = performance.now()
      }
      yield piece
    }
  }
}

function pathOf({ tenant, id }: FileKey): string {
  return `${tenant}/${id}`
}

/** Short ones: XML of the server. */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response) if (text.length < 100_000) text += chunk
  return text
}
