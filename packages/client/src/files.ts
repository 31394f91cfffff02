/** Uploads, downloads and removes files. Bytes are streamed; a transfer has no time limit of its own, and is tried once. */
import type { File as StoredFile } from '@rivulet/protocol'
import { callsOf } from './http/calls.ts'
import type { CallOptions, Http } from './http/http.ts'
import { pathOf } from './http/path-of.ts'
import { readFields } from './http/responses.ts'

export type FileSource = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

export type UploadProgress = {
  /** Bytes that were handed over so far. */
  sent: number
  /** Null for a stream, whose length is not known. */
  total: number | null
}

export type UploadOptions = CallOptions & {
  /** Default: that of a browser's `File`. */
  name?: string
  /** Default: that of a `Blob`, else `application/octet-stream`. */
  mimeType?: string
  onProgress?: (progress: UploadProgress) => void
  /** The same key with the same file returns the file of the first upload. */
  idempotencyKey?: string
}

export type DownloadOptions = CallOptions & {
  /** From the first byte to the last, both included. */
  range?: { first: number; last?: number }
}

export type Download = {
  mimeType: string
  /** Of the part that is sent. */
  size: number
  stream: ReadableStream<Uint8Array>
  bytes(): Promise<Uint8Array>
  blob(): Promise<Blob>
}

export type FileCalls = {
  /** Resolves when the file is stored. A message refers to it as `{ type: 'media', mimeType, file: id }`. */
  upload(source: FileSource, options?: UploadOptions): Promise<StoredFile>
  download(id: string, options?: DownloadOptions): Promise<Download>
  /** Rejects with `file_in_use` while a task refers to it. */
  delete(id: string, options?: CallOptions): Promise<void>
}

export function createFileCalls(http: Http): FileCalls {
  const { transfer } = http
  return { upload, download, delete: callsOf(http, 'files').remove }

  async function upload(source: FileSource, options: UploadOptions = {}): Promise<StoredFile> {
    const { name = nameOf(source), mimeType = typeOf(source), onProgress, idempotencyKey, signal } = options
    const headers = {
      'content-type': mimeType || 'application/octet-stream',
      ...(name && { 'x-filename': `UTF-8''${encodeURIComponent(name)}` }),
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    }
    const init = { method: 'POST', headers, ...(signal && { signal }) }
    const { XMLHttpRequest } = globalThis as Page
    const canWatch = onProgress && source instanceof Blob && XMLHttpRequest
    const response = canWatch
      ? await transfer('/v1/files', { ...init, body: source }, (url, own) =>
          sendWatched(new XMLHttpRequest(), url, own, source, onProgress),
        )
      : await transfer('/v1/files', { ...init, body: bodyOf(source, onProgress), duplex: 'half' } as RequestInit)
    return readFields<StoredFile>('file:file')(response)
  }

  async function download(id: string, { range, signal }: DownloadOptions = {}): Promise<Download> {
    const headers = { ...(range && { range: `bytes=${range.first}-${range.last ?? ''}` }) }
    const response = await transfer(pathOf('files', id), { headers, ...(signal && { signal }) })
    return {
      mimeType: response.headers.get('content-type') ?? 'application/octet-stream',
      size: Number(response.headers.get('content-length')),
      stream: response.body ?? new Blob([]).stream(),
      bytes: async () => new Uint8Array(await response.arrayBuffer()),
      blob: () => response.blob(),
    }
  }
}

function nameOf(source: FileSource): string | undefined {
  return 'name' in source && typeof source.name === 'string' ? source.name : undefined
}

function typeOf(source: FileSource): string {
  return source instanceof Blob ? source.type : ''
}

function sizeOf(source: FileSource): number | null {
  if (source instanceof Blob) return source.size
  return source instanceof Uint8Array ? source.byteLength : null
}

/** A body that is a stream cannot be sent by every browser, so only what is one, or has to be watched, becomes one. */
function bodyOf(source: FileSource, onProgress: UploadOptions['onProgress']): NonNullable<RequestInit['body']> {
  if (!onProgress && (source instanceof Blob || source instanceof Uint8Array)) return source as NonNullable<RequestInit['body']>
  const total = sizeOf(source)
  const chunks = chunksOf(source)[Symbol.asyncIterator]()
  let sent = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) return controller.close()
      controller.enqueue(value)
      sent += value.byteLength
      onProgress?.({ sent, total })
    },
    cancel: async reason => void (await chunks.return?.(reason)),
  })
}

async function* chunksOf(source: FileSource): AsyncGenerator<Uint8Array> {
  const stream = source instanceof Blob || source instanceof Uint8Array ? new Blob([source as Blob]).stream() : source
  if (Symbol.asyncIterator in stream) {
    yield* stream as AsyncIterable<Uint8Array>
    return
  }
  // Not every browser can iterate over a stream.
  const reader = (stream as ReadableStream<Uint8Array>).getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
}

/** What is used of a browser's XMLHttpRequest. Other platforms have none. */
type WatchedRequest = {
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getResponseHeader(name: string): string | null
  send(body: Blob): void
  abort(): void
  readonly upload: { onprogress: ((event: { loaded: number }) => void) | null }
  readonly status: number
  readonly responseText: string
  onload: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
  onloadend: (() => void) | null
}

type Page = { XMLHttpRequest?: new () => WatchedRequest }

/** Because a browser's `fetch` does not say how far it is. */
function sendWatched(
  request: WatchedRequest,
  url: string,
  { headers, signal }: RequestInit,
  body: Blob,
  onProgress: (progress: UploadProgress) => void,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const abort = () => request.abort()
    request.open('POST', url)
    for (const [name, value] of Object.entries(headers as Record<string, string>)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded: sent }) => onProgress({ sent: Math.min(sent, body.size), total: body.size })
    request.onload = () => {
      const retryAfter = request.getResponseHeader('retry-after')
      resolve(new Response(request.responseText, { status: request.status, ...(retryAfter && { headers: { 'retry-after': retryAfter } }) }))
    }
    request.onerror = () => reject(new TypeError('The upload failed'))
    request.onabort = () => reject(signal?.reason)
    request.onloadend = () => signal?.removeEventListener('abort', abort)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) reject(signal.reason)
    else request.send(body)
  })
}
