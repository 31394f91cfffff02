/** The headers of an upload and of a download. A name travels as ASCII, or in the form of RFC 8187; the checksum of an upload in that of RFC 9530. */
import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorDetail, fileNameSchema, limitNames, mimeTypeSchema, RivuletError } from '@rivulet/protocol'
import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import type { FileRow } from '../../../store/files/file-rows.ts'

export type FileHead = {
  name: string | null
  mimeType: string
  /** Null if the client does not know it yet. */
  size: number | null
  /** In hex, if the client has sent one. */
  sha256: string | null
}

export function readFileHead(headers: IncomingHttpHeaders, maxBytes: number): FileHead {
  const size = headers['content-length'] === undefined ? sizeWithoutLength(headers) : Number(headers['content-length'])
  if (size !== null && size > maxBytes) throw tooLarge(maxBytes)
  const name = headers['x-filename']
  return {
    size,
    name: name === undefined ? null : check(fileNameSchema, decodeName(String(name)), 'x-filename'),
    mimeType: check(mimeTypeSchema, headers['content-type'] ?? 'application/octet-stream', 'content-type'),
    sha256: digestIn(headers['content-digest']),
  }
}

export function tooLarge(maxBytes: number): RivuletError {
  return new RivuletError('body_too_large', `A file may have at most ${maxBytes} bytes (${limitNames.fileBytes})`)
}

/** A request with neither a length nor chunks has no body. */
function sizeWithoutLength(headers: IncomingHttpHeaders): number | null {
  return headers['transfer-encoding'] === undefined ? 0 : null
}

/** Node reads headers as Latin-1, which is not what the client meant. */
function decodeName(header: string): string {
  const [, encoded] = /^utf-8'[\w-]*'(.*)$/i.exec(header) ?? []
  if (encoded === undefined && /^[\x20-\x7e]*$/.test(header)) return header
  try {
    if (encoded !== undefined) return decodeURIComponent(encoded)
  } catch {}
  throw invalid('x-filename', "Use ASCII, or UTF-8'' and percent-encoded UTF-8 (RFC 8187)")
}

function digestIn(header: string | string[] | undefined): string | null {
  if (header === undefined) return null
  const [, base64] = /(?:^|,\s*)sha-256=:([A-Za-z0-9+/]{43}=):/.exec(String(header)) ?? []
  if (!base64) throw invalid('content-digest', 'Use sha-256=:<base64>: (RFC 9530)')
  return Buffer.from(base64, 'base64').toString('hex')
}

function check<S extends z.ZodType>(schema: S, value: unknown, header: string): z.output<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw invalid(header, parsed.error.issues[0]?.message ?? 'Invalid')
}

export function invalid(header: string, reason: string): RivuletError {
  const details: ErrorDetail[] = [{ path: `/headers/${header}`, reason }]
  return new RivuletError('validation_failed', 'Request validation failed', { details })
}

/** A file is saved, never shown: whatever its type says, no browser runs it. */
export function setFileHeaders(reply: FastifyReply, file: FileRow): FastifyReply {
  return reply.headers({
    'content-type': file.mimeType,
    'content-disposition': disposition(file.name),
    'content-security-policy': "sandbox; default-src 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'private, no-cache',
    'accept-ranges': 'bytes',
    etag: etagOf(file),
  })
}

export function etagOf({ sha256 }: Pick<FileRow, 'sha256'>): string {
  return `"${sha256}"`
}

function disposition(name: string | null): string {
  if (name === null) return 'attachment'
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replace(/['()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
