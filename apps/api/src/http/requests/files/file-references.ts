/**
 * The files that a request refers to, in its `input` and its `history`. Each has to be there, and to be the caller's: of its tenant, and for a token of
 * its task. The size in a message is that of the file, whatever the caller says.
 */
import { type Content, type ErrorDetail, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { Principal } from '../../../access/principal.ts'
import type { DatabaseHandle } from '../../../store/connection/database.ts'
import { findFiles } from '../../../store/files/file-rows.ts'

type MediaFile = Extract<Content, { type: 'media' }> & { file: string }
type Reference = { path: string; content: MediaFile }

const unknownType = 'application/octet-stream'

type FindDatabase = DatabaseHandle['databaseFor']

export function checkFileReferences(scope: FastifyInstance, databaseFor: FindDatabase): void {
  scope.addHook('preHandler', ({ body, principal }) => requireFiles(databaseFor, principal, body))
}

/**
 * @param body with `input` and `history`, as in a request of `/v1`
 * @param findsTypes for a protocol whose requests may leave out the type of a file: it is that of the upload
 */
export async function requireFiles(databaseFor: FindDatabase, principal: Principal, body: unknown, findsTypes = false): Promise<void> {
  const { tenant, token } = principal
  const references = referencesIn(body)
  if (references.length === 0) return
  const ids = references.map(({ content }) => content.file)
  const known = new Map((await findFiles(databaseFor(principal), tenant, ids, token?.task ?? null)).map(file => [file.id, file]))
  const details: ErrorDetail[] = []
  for (const { path, content } of references) {
    const file = known.get(content.file)
    if (!file) details.push({ path: `${path}/file`, reason: 'No such file' })
    else {
      const name = content.name ?? file.name
      Object.assign(
        content,
        { size: file.size },
        name !== null && { name },
        findsTypes && content.mimeType === unknownType && { mimeType: file.mimeType },
      )
    }
  }
  if (details.length > 0) throw new RivuletError('validation_failed', 'Request validation failed', { details })
}

function referencesIn(body: unknown): Reference[] {
  if (!isObject(body)) return []
  return [...contentsIn('/input', body.input), ...historyIn('/history', body.history)].filter(isReference)
}

function contentsIn(path: string, value: unknown): { path: string; content: unknown }[] {
  return Array.isArray(value) ? value.map((content, i) => ({ path: `${path}/${i}`, content })) : [{ path, content: value }]
}

function historyIn(path: string, value: unknown): { path: string; content: unknown }[] {
  if (!Array.isArray(value)) return []
  return value.map((message, i) => ({ path: `${path}/${i}/content`, content: isObject(message) ? message.content : null }))
}

function isReference(found: { path: string; content: unknown }): found is Reference {
  return isObject(found.content) && found.content.type === 'media' && typeof found.content.file === 'string'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
