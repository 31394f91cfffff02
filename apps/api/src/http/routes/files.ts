/** Uploads, downloads and removes files. Bytes pass through, as fast as the slower side takes them; a 201 is sent only after the commit. */
import { Readable } from 'node:stream'
import * as contract from '@rivulet/contract/files'
import { type Json, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { namespaceOf } from '../../access/principal.ts'
import { type FileRow, getFile, toFile } from '../../store/files/file-rows.ts'
import { createAudit } from '../requests/audited.ts'
import { readFileBody } from '../requests/files/file-body.ts'
import { etagOf, type FileHead, invalid, readFileHead, setFileHeaders, tooLarge } from '../requests/files/file-head.ts'
import { isKnown, rangeOf } from '../requests/files/file-range.ts'
import { keyOf, respondOnce, sendResponse } from '../requests/idempotent.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

/** In a scope of its own, because bodies are passed on as they are. */
export async function fileRoutes(scope: FastifyInstance, services: Services): Promise<void> {
  const { databaseFor, files } = services
  const { note } = createAudit(services)
  acceptAnyBody(scope)
  const { upload, download } = createTransferring(services)

  serve(scope, contract.uploadFile, async (request, reply) => {
    const { tenant, token } = request.principal
    // Before the body: an invalid key is refused without reading it.
    keyOf(request, null)
    return upload(request, { tenant, caller: namespaceOf(request.principal), uploadedFor: token?.task ?? null }, async file => {
      const { name, mimeType, sha256, size } = file
      const said = { name, mimeType, sha256, size }
      const response = await respondOnce(
        databaseFor(tenant),
        request,
        async tx => {
          const completed = await files.complete(tx, file)
          await note(request, { target: file.id, details: { size } })(tx)
          return { status: 201, body: { file: toFile(completed) } as Json }
        },
        { body: said },
      )
      if (response.replayed) await files.discard(file)
      return sendResponse(reply, response)
    })
  })

  serve(scope, contract.downloadFile, async (request, reply) => {
    const { tenant, token } = request.principal
    const file = await getFile(databaseFor(request.principal), tenant, request.params.id, token?.task ?? null)
    if (request.method === 'HEAD') return sendHead(request, reply, file)
    return download(request, reply, file, namespaceOf(request.principal))
  })

  serve(scope, contract.deleteFile, async request => {
    const { id } = request.params
    await files.remove(request.principal.tenant, id, note(request, { target: id }))
    return null
  })
}

/** Without reading the bytes. Fastify's HEAD route fails without a body to discard, so it gets an empty one. */
function sendHead(request: FastifyRequest, reply: FastifyReply, file: FileRow): FastifyReply {
  setFileHeaders(reply, file)
  if (isKnown(request.headers, etagOf(file))) reply.status(304)
  else reply.header('content-length', file.size)
  return reply.send(Readable.from([]))
}

/** A type says nothing about how a body is read here: it is never parsed. */
export function acceptAnyBody(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null, null))
}

/** The head of an upload, which is known before its bytes, and the bytes. */
type UploadContent = FileHead & { bytes: AsyncIterable<Buffer> }

/** The body is the file. */
const wholeBody = async (request: FastifyRequest, body: AsyncGenerator<Buffer>, maxBytes: number): Promise<UploadContent> => ({
  ...readFileHead(request.headers, maxBytes),
  bytes: body,
})

type Uploader = { tenant: string; caller: string; uploadedFor: string | null }

export function createTransferring({ files, transfers, metrics, config: { limits } }: Services) {
  return { upload, download }

  async function upload<T>(
    request: FastifyRequest,
    { tenant, caller, uploadedFor }: Uploader,
    commit: Parameters<typeof files.write<T>>[2],
    open = wholeBody,
  ): Promise<T> {
    const transfer = await transfers.begin(tenant, caller)
    const { fileBytes: maxBytes, viewerStallMs: stallMs } = limits
    const body = readFileBody(request.raw, { maxBytes, stallMs, signal: transfer.signal, tooLarge: () => tooLarge(maxBytes) })
    try {
      const { name, mimeType, size, sha256, bytes } = await open(request, body, maxBytes)
      return await files.write(tenant, { bytes: counted('up', bytes), size, name, mimeType, uploadedFor }, file => {
        if (sha256 !== null && sha256 !== file.sha256) throw invalid('content-digest', 'The body does not have this checksum')
        return commit(file)
      })
    } finally {
      // A body that is not read to its end would hold back the response.
      await body.return(undefined)
      transfer.over()
    }
  }

  async function download(request: FastifyRequest, reply: FastifyReply, file: FileRow, caller: string): Promise<FastifyReply> {
    const etag = etagOf(file)
    setFileHeaders(reply, file)
    if (isKnown(request.headers, etag)) return reply.status(304).send(null)
    const range = satisfiable(request, reply, file)
    const { start, end } = range ?? { start: 0, end: file.size }
    if (range) reply.status(206).header('content-range', `bytes ${start}-${end - 1}/${file.size}`)
    reply.header('content-length', end - start)
    // Before it waits, because the caller may leave meanwhile.
    const left = new AbortController()
    reply.raw.once('close', () => left.abort())
    const transfer = await transfers.begin(file.tenant, caller)
    if (left.signal.aborted) transfer.over()
    else left.signal.addEventListener('abort', transfer.over)
    const pieces = counted('down', files.read(file, range))
    // The first piece now: if the store is unavailable, an error can still be sent.
    const first = await pieces.next().catch(error => {
      transfer.over()
      for (const header of Object.keys(reply.getHeaders())) if (header !== 'vary' && !header.startsWith('x-')) reply.removeHeader(header)
      throw error
    })
    return reply.send(Readable.from(after(first, pieces)))
  }

  function satisfiable({ headers }: FastifyRequest, reply: FastifyReply, file: FileRow) {
    try {
      return rangeOf(headers, file.size, etagOf(file))
    } catch (error) {
      if (error instanceof RivuletError) reply.header('content-range', `bytes */${file.size}`).removeHeader('content-disposition')
      throw error
    }
  }

  async function* counted(direction: 'up' | 'down', bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of bytes) {
      metrics.fileBytes.inc({ direction }, piece.length)
      yield piece
    }
  }
}

async function* after(first: IteratorResult<Buffer>, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (first.done) return
  yield first.value
  yield* rest
}
