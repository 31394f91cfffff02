/** The bytes of files, between the server and the handler of a turn. Streams, so they are tried once: a handler that wants more tries again. */
import type * as http from 'node:http'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { type File, type FileId, fileSchema, isErrorCode, RivuletError, type TurnId } from '@rivulet/protocol'
import { z } from 'zod'
import type { createServerRequests } from '../lease-thread/server-requests.mjs'

export type FileBytes = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

export type FileAbout = { mimeType: string; name?: string }

/** A file that is being read. */
export type ReadFile = {
  readonly id: FileId
  readonly name: string | undefined
  readonly mimeType: string
  readonly size: number
  /** To be read once, as `bytes` is. */
  readonly stream: ReadableStream<Uint8Array>
  bytes(): Promise<Uint8Array>
}

type Held = { turnId: TurnId; claimId: string }

export type FileCalls = ReturnType<typeof createFileCalls>

type FileCallDeps = { requests: ReturnType<typeof createServerRequests>; key?: string | undefined }

export function createFileCalls({ requests, key }: FileCallDeps) {
  return { read, store }

  async function read(id: FileId, held: Held, signal: AbortSignal): Promise<ReadFile> {
    const headers = { 'content-type': 'application/json' }
    const response = await send('file', { headers, body: Buffer.from(JSON.stringify({ ...held, file: id })), signal })
    const stream = Readable.toWeb(response) as ReadableStream<Uint8Array>
    return {
      id,
      name: nameIn(response.headers['content-disposition']),
      mimeType: response.headers['content-type'] ?? 'application/octet-stream',
      size: Number(response.headers['content-length']),
      stream,
      bytes: async () => new Uint8Array(await new Response(stream).arrayBuffer()),
    }
  }

  async function store(bytes: FileBytes, { mimeType, name }: FileAbout, held: Held, signal: AbortSignal): Promise<File> {
    const headers = {
      ...{ 'content-type': mimeType, 'x-turn-id': held.turnId, 'x-claim-id': held.claimId },
      ...(name !== undefined && { 'x-filename': `UTF-8''${encodeURIComponent(name)}` }),
    }
    const body = bytes instanceof Blob ? (bytes.stream() as AsyncIterable<Uint8Array>) : (bytes as Uint8Array | AsyncIterable<Uint8Array>)
    return stored.parse(await json(await send('files', { headers, body, signal }))).file
  }

  type Sending = { headers: Record<string, string>; body: Uint8Array | AsyncIterable<Uint8Array>; signal: AbortSignal }

  async function send(call: string, { headers, body, signal }: Sending): Promise<http.IncomingMessage> {
    const all = { ...headers, ...(key && { authorization: `Bearer ${key}` }) }
    const response = await requests.send(call, { headers: all, signal }, request => {
      if (body instanceof Uint8Array) request.end(body)
      else
        Readable.from(body)
          .on('error', error => request.destroy(error))
          .pipe(request)
    })
    if (response.statusCode === 200) return response
    const refusal = errorShape.safeParse(await json(response).catch(() => null))
    if (!refusal.success) throw new Error(`${call} returned ${response.statusCode}`)
    const { code, message } = refusal.data.error
    throw new RivuletError(isErrorCode(code) ? code : 'internal', message)
  }
}

const stored = z.object({ file: fileSchema })
const errorShape = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

function nameIn(disposition: string | undefined): string | undefined {
  const [, encoded] = /filename\*=UTF-8''([^;]+)/.exec(disposition ?? '') ?? []
  return encoded === undefined ? undefined : decodeURIComponent(encoded)
}
