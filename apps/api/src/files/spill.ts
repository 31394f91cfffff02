/**
 * Takes large values out of messages that are about to be committed, and puts them back for readers that want them. Rows, snapshots and pages stay
 * small, whatever an agent emits.
 *
 * The bytes are written before the commit, and become a file in it. The value stays in its message if the store is unavailable, or if the files of the
 * tenant have no room: an end of a turn never waits for a store. The room is checked before the commit, so turns that end together may exceed it.
 */
import { type Content, type Json, type Message, maxInlineMediaBytes, maxInlineValueBytes, RivuletError } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import type { Database } from '../store/connection/database.ts'
import type { Tenant } from '../store/connection/tenant.ts'
import { type FileRow, findFiles, type NewFile } from '../store/files/file-rows.ts'
import { jsonOf, mayBecomeFile } from '../store/files/large-values.ts'
import type { Page } from '../store/reads/pages.ts'
import type { Files } from './files.ts'
import { previewOf } from './json-preview.ts'

/** Messages as they are stored, and the files that are completed with them. */
type Spilled = { messages: Message[]; spills: NewFile[] }

export type Spilling = ReturnType<typeof createSpilling>

export function createSpilling(files: Files, logger: FastifyBaseLogger) {
  return { spill, putBack }

  async function spill(tenant: Tenant, messages: Message[]): Promise<Spilled> {
    const spills: NewFile[] = []
    const slim: Message[] = []
    const refusals: RivuletError[] = []
    const onFailure = (message: Message, error: unknown) => {
      if (error instanceof RivuletError && error.code === 'quota_exceeded') refusals.push(error)
      else logger.warn({ task: message.task, err: error }, 'could not store a large value as a file; it stays in its message')
      return null
    }
    for (const message of messages) {
      const large = largeValue(message.content)
      const file = large && (await store(tenant, message, large).catch(error => onFailure(message, error)))
      if (file) spills.push(file)
      slim.push(file ? { ...message, content: withoutValue(message.content, file) } : message)
    }
    const [refusal] = refusals
    if (refusal)
      logger.warn(
        { task: messages[0]?.task, values: refusals.length, reason: refusal.message },
        'large values stay in their messages, because the files of the tenant have no room',
      )
    return { messages: slim, spills }
  }

  async function store(tenant: Tenant, { task }: Message, { bytes, mimeType, name = null }: LargeValue): Promise<NewFile> {
    const source = { bytes: once(bytes), size: bytes.length, name, mimeType, uploadedFor: task }
    await files.requireRoom(tenant, bytes.length)
    return files.write(tenant, source, async file => ({ ...file, isSpill: true, isUsed: true }))
  }

  /** A page that becomes too large ends earlier, with at least one message. */
  async function putBack(db: Database, tenant: Tenant, page: Page<Message, number>, maxBytes: number): Promise<Page<Message, number>> {
    const referred = page.data.flatMap(({ content }) => ('file' in content && content.file !== undefined ? [content.file] : []))
    const spills = new Map((await findFiles(db, tenant, referred)).flatMap(file => (file.isSpill ? [[file.id, file] as const] : [])))
    const data: Message[] = []
    let bytes = 0
    for (const message of page.data) {
      const file = 'file' in message.content && message.content.file !== undefined ? spills.get(message.content.file) : undefined
      bytes += file?.size ?? Buffer.byteLength(JSON.stringify(message.content))
      if (data.length > 0 && bytes > maxBytes) return { data, nextCursor: data.at(-1)?.index ?? null }
      data.push(file ? { ...message, content: withValue(message.content, await readAll(file)) } : message)
    }
    return { ...page, data }
  }

  async function readAll(file: FileRow): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of files.read(file, null)) pieces.push(piece)
    return Buffer.concat(pieces)
  }
}

type LargeValue = { bytes: Buffer; mimeType: string; name?: string | null }

/** Null for a content that stays as it is. */
function largeValue(content: Content): LargeValue | null {
  if (!mayBecomeFile(content)) return null
  if (content.type === 'media') {
    const bytes = Buffer.from(content.data ?? '', 'base64')
    return bytes.length > maxInlineMediaBytes ? { bytes, mimeType: content.mimeType, name: content.name ?? null } : null
  }
  const value = jsonOf(content)
  const bytes = Buffer.from(JSON.stringify(value))
  return bytes.length > maxInlineValueBytes ? { bytes, mimeType: 'application/json' } : null
}

function withoutValue(content: Content, { id: file, size }: NewFile): Content {
  switch (content.type) {
    case 'media': {
      const { data: _, ...rest } = content
      return { ...rest, file, size }
    }
    case 'data':
      return { ...content, data: previewOf(content.data), file, size }
    case 'tool_response':
      return { ...content, content: previewOf(content.content), file, size }
    case 'text':
    case 'reasoning':
    case 'tool_request':
      return content
    default:
      return content satisfies never
  }
}

function withValue(content: Content, bytes: Buffer): Content {
  switch (content.type) {
    case 'media': {
      const { file: _file, size: _size, ...rest } = content
      return { ...rest, data: bytes.toString('base64') }
    }
    case 'data': {
      const { file: _file, size: _size, ...rest } = content
      return { ...rest, data: JSON.parse(bytes.toString()) as Json }
    }
    case 'tool_response': {
      const { file: _file, size: _size, ...rest } = content
      return { ...rest, content: JSON.parse(bytes.toString()) as Json }
    }
    case 'text':
    case 'reasoning':
    case 'tool_request':
      return content
    default:
      return content satisfies never
  }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
