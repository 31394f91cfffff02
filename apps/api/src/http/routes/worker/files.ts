/** The files of a turn: a worker reads them and stores new ones. */
import { claimHeaders, fileIdSchema, fileSchema } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { getFile, toFile } from '../../../store/files/file-rows.ts'
import type { Services } from '../../services.ts'
import { acceptAnyBody, createTransferring } from '../files.ts'
import { config } from '../internal/held-turns.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import { tags } from './claims.ts'
import { claimOf } from './turn-calls.ts'

const params = z.object({ id: fileIdSchema })
const headers = claimHeaders

export function workerProtocolFileRoutes(scope: FastifyInstance, services: Services, { held }: WorkerCalls): void {
  const { db, files } = services
  const { upload, download } = createTransferring(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.get('/files/:id', { config, schema: { tags, headers, params, response: { 200: z.any(), 206: z.any() } } }, async (request, reply) => {
    const { turnId, claimId } = claimOf(request)
    const { task, tenant } = await held.requireHeldTask(request, turnId, claimId)
    return download(request, reply, await getFile(db, tenant, request.params.id, task), `turn ${turnId}`)
  })

  scope.register(async own => {
    acceptAnyBody(own)
    const schema = { tags, headers, consumes: ['*/*'], body: z.any(), response: { 200: z.object({ file: fileSchema }) } }
    own.withTypeProvider<ZodTypeProvider>().post('/files', { config, schema }, async request => {
      const { turnId, claimId } = claimOf(request)
      const { task, tenant } = await held.requireHeldTask(request, turnId, claimId)
      const uploader = { tenant, caller: `turn ${turnId}`, uploadedFor: task }
      return upload(request, uploader, async file => ({ file: toFile(await db.transaction(tx => files.complete(tx, file))) }))
    })
  })
}
