/**
 * OpenAI's files, below `/openai/v1`: those of the tenant, as `/v1/files` has them. An upload is a form, as OpenAI's SDKs send it.
 *
 * An agent gets a file as an input of a message, so every file has the purpose `user_data`. Purposes of APIs that do not exist here are refused.
 */
import * as contract from '@rivulet/contract/openai'
import type { FileId, Json } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { namespaceOf } from '../../../access/principal.ts'
import { createAudit } from '../../../http/requests/audited.ts'
import { Form } from '../../../http/requests/files/form-file.ts'
import { keyOf, respondOnce, sendResponse } from '../../../http/requests/idempotent.ts'
import { acceptAnyBody, createTransferring } from '../../../http/routes/files.ts'
import { serve } from '../../../http/serve.ts'
import type { Services } from '../../../http/services.ts'
import { type FileRow, getFile, listFiles } from '../../../store/files/file-rows.ts'
import { wrong } from '../openai-input.ts'

const purposes: readonly string[] = contract.filePurposes

/** In a scope of its own, because bodies are passed on as they are. */
export async function fileRoutes(scope: FastifyInstance, services: Services): Promise<void> {
  const { databaseFor, files } = services
  const { note } = createAudit(services)
  const { upload, download } = createTransferring(services)
  acceptAnyBody(scope)

  serve(scope, contract.createOpenAiFile, async (request, reply) => {
    const { tenant } = request.principal
    // Before the body: an invalid key is refused without reading it.
    keyOf(request, null)
    let fields: ReadonlyMap<string, string> = new Map()
    return upload(
      request,
      { tenant, caller: namespaceOf(request.principal), uploadedFor: null },
      async file => {
        const purpose = fields.get('purpose') ?? contract.filePurpose
        if (!purposes.includes(purpose)) throw wrong('purpose', `Use one of ${purposes.join(', ')}`)
        const { name, mimeType, sha256, size } = file
        const response = await respondOnce(
          databaseFor(tenant),
          request,
          async tx => {
            const completed = await files.complete(tx, file)
            await note(request, { target: file.id, details: { size } })(tx)
            return { status: 200, body: openAiFile(completed) as Json }
          },
          { body: { name, mimeType, sha256, size } },
        )
        if (response.replayed) await files.discard(file)
        return sendResponse(reply, response)
      },
      async (_request, body) => {
        const form = new Form(request.headers['content-type'] ?? '', body)
        fields = form.fields
        return { ...(await form.file('file')), size: null, sha256: null }
      },
    )
  })

  serve(scope, contract.listOpenAiFiles, async ({ principal, query }) => {
    const { purpose, limit, ...page } = query
    const { tenant, agents } = principal
    // A key that is limited to agents may use a file that no task refers to, but not find those that others have uploaded.
    const wanted = { ...page, limit: limit + 1, ...(agents && { isUsed: true as const }) }
    const isOther = purpose !== undefined && purpose !== contract.filePurpose
    const rows = isOther ? [] : await listFiles(databaseFor(principal), tenant, wanted)
    const data = rows.slice(0, limit).map(openAiFile)
    const [first, last] = [data[0]?.id ?? null, data.at(-1)?.id ?? null]
    return { object: 'list' as const, data, first_id: first, last_id: last, has_more: rows.length > data.length }
  })

  serve(scope, contract.getOpenAiFile, async request => openAiFile(await fileOf(request, request.params.id)))

  serve(scope, contract.getOpenAiFileContent, async (request, reply) =>
    download(request, reply, await fileOf(request, request.params.id), namespaceOf(request.principal)),
  )

  serve(scope, contract.deleteOpenAiFile, async request => {
    const { id } = request.params
    await files.remove(request.principal.tenant, id, note(request, { target: id }))
    return { id, object: 'file' as const, deleted: true as const }
  })

  function fileOf({ principal }: FastifyRequest, id: FileId): Promise<FileRow> {
    return getFile(databaseFor(principal), principal.tenant, id)
  }
}

function openAiFile({ id, name, size, createdAt }: FileRow) {
  return {
    ...{ id, object: 'file' as const, bytes: size, created_at: Math.floor(createdAt.getTime() / 1_000) },
    ...({ filename: name ?? id, purpose: contract.filePurpose, status: 'processed' as const } as const),
  }
}
