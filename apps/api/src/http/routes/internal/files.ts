/** The files of a turn: a worker reads them and stores new ones. */
import * as contract from '@rivulet/contract/internal'
import { storeFileHeaders } from '@rivulet/contract/internal'
import type { FastifyInstance } from 'fastify'
import { taskNotFound } from '../../../store/connection/tenant.ts'
import { getFile, toFile } from '../../../store/files/file-rows.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import { acceptAnyBody, createTransferring } from '../files.ts'
import type { HeldTurns } from './held-turns.ts'

export function workerFileRoutes(scope: FastifyInstance, services: Services, { requireHeldTask }: HeldTurns): void {
  const { db, files } = services
  const { upload, download } = createTransferring(services)

  serve(scope, contract.readWorkerFile, async (request, reply) => {
    const { turnId, claimId, file } = request.body
    const { task, tenant } = await requireHeldTask(request, turnId, claimId)
    return download(request, reply, await getFile(db, tenant, file, task), `turn ${turnId}`)
  })

  scope.register(async own => {
    acceptAnyBody(own)
    serve(own, contract.storeWorkerFile, async request => {
      const head = storeFileHeaders.safeParse(request.headers)
      if (!head.success) throw taskNotFound()
      const { 'x-turn-id': turnId, 'x-claim-id': claimId } = head.data
      const { task, tenant } = await requireHeldTask(request, turnId, claimId)
      const uploader = { tenant, caller: `turn ${turnId}`, uploadedFor: task }
      return upload(request, uploader, async file => ({ file: toFile(await db.transaction(tx => files.complete(tx, file))) }))
    })
  })
}
