/** The files of a turn: a worker reads them and stores new ones. */
import { fileSchema, readFileBody, storeFileHeaders } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { taskNotFound } from '../../../store/connection/tenant.ts'
import { completeFile, getFile, toFile } from '../../../store/files/file-rows.ts'
import type { Services } from '../../services.ts'
import { acceptAnyBody, createTransferring } from '../files.ts'
import { config, type HeldTurns, tags } from './held-turns.ts'

export function workerFileRoutes(scope: FastifyInstance, services: Services, { requireHeldTask }: HeldTurns): void {
  const { db } = services
  const { upload, download } = createTransferring(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.post('/file', { config, schema: { tags, body: readFileBody, response: { 200: z.any() } } }, async (request, reply) => {
    const { turnId, claimId, file } = request.body
    const { task, tenant } = await requireHeldTask(request, turnId, claimId)
    return download(request, reply, await getFile(db, tenant, file, task), `turn ${turnId}`)
  })

  scope.register(async own => {
    acceptAnyBody(own)
    own
      .withTypeProvider<ZodTypeProvider>()
      .post(
        '/files',
        { config, schema: { tags, consumes: ['*/*'], body: z.any(), response: { 200: z.object({ file: fileSchema }) } } },
        async request => {
          const head = storeFileHeaders.safeParse(request.headers)
          if (!head.success) throw taskNotFound()
          const { 'x-turn-id': turnId, 'x-claim-id': claimId } = head.data
          const { task, tenant } = await requireHeldTask(request, turnId, claimId)
          const uploader = { tenant, caller: `turn ${turnId}`, uploadedFor: task }
          return upload(request, uploader, async file => ({ file: toFile(await db.transaction(tx => completeFile(tx, file))) }))
        },
      )
  })
}
