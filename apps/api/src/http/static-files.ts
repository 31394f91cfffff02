/**
 * Files that the API serves without a key, from memory: each is read and compressed once, and every response shares those bytes. So a client
 * that sends a thousand requests and reads nothing holds no copies.
 *
 * Every request checks the file on disk, so that a file which changes while the process runs is served at once.
 */
import { readFile, stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'

const compress = promisify(gzip)

/** Below this, a compressed copy is not worth its header. */
const minCompressedBytes = 1_024

export type StaticFile = { type: string; plain: Buffer; gzip: Buffer | null }

export type StaticFiles = {
  /** Null where there is no such file, or none of a type that is served. Only plain names inside the folder are looked for. */
  find(name: string): Promise<StaticFile | null>
}

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

/** These are compressed already. */
const isCompressed: ReadonlySet<string> = new Set(['image/png', 'font/woff2'])

/** @param folder with a slash at its end */
export function createStaticFiles(folder: string): StaticFiles {
  const known = new Map<string, { version: string; file: Promise<StaticFile | null> }>()
  return { find }

  async function find(name: string): Promise<StaticFile | null> {
    const type = contentTypes[extname(name)]
    if (!type || !/^[\w-][\w.-]*$/.test(name)) return null
    const path = `${folder}${name}`
    const found = await stat(path).catch(() => null)
    if (!found?.isFile()) return null
    const version = `${found.mtimeMs} ${found.size}`
    const before = known.get(name)
    if (before?.version === version) return before.file
    // Set before it is read: requests that arrive meanwhile wait for the same bytes.
    const file = readFile(path)
      .then(bytes => createStaticFile(type, bytes))
      .catch(() => forget(name))
    known.set(name, { version, file })
    return file
  }

  /** The file was removed after it was looked at. */
  function forget(name: string): null {
    known.delete(name)
    return null
  }
}

export async function createStaticFile(type: string, content: Buffer | string): Promise<StaticFile> {
  const plain = typeof content === 'string' ? Buffer.from(content) : content
  const isWorthIt = plain.length >= minCompressedBytes && !isCompressed.has(type)
  return { type, plain, gzip: isWorthIt ? await compress(plain, { level: 9 }) : null }
}

export function sendStatic(reply: FastifyReply, { type, plain, gzip: compressed }: StaticFile): FastifyReply {
  reply.type(type)
  if (!compressed) return reply.send(plain)
  // Where origins are allowed, the response varies by them, too.
  reply.header('vary', [reply.getHeader('vary'), 'accept-encoding'].filter(Boolean).join(', '))
  const isWanted = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(String(reply.request.headers['accept-encoding'] ?? ''))
  return isWanted ? reply.header('content-encoding', 'gzip').send(compressed) : reply.send(plain)
}
