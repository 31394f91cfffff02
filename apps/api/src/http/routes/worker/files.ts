/** The files of a turn: a worker reads them and stores new ones. */
import * as contract from '@rivulet/contract/worker'
import type { FastifyInstance } from 'fastify'
import { getFile, toFile } from '../../../store/files/file-rows.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import { acceptAnyBody, createTransferring } from '../files.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import { claimOf } from './turn-calls.ts'

export function workerProtocolFileRoutes(scope: FastifyInstance, services: Services, { held }: WorkerCalls): void {
  const { db, files } = services
  const { upload, download } = createTransferring(services)

  serve(scope, contract.workerReadFile, async (request, reply) => {
    const { turnId, claimId } = claimOf(request)
    const { task, tenant } = await held.requireHeldTask(request, turnId, claimId)
    return download(request, reply, await getFile(db, tenant, request.params.id, task), `turn ${turnId}`)
  })

  scope.register(async own => {
    acceptAnyBody(own)
    serve(own, contract.workerStoreFile, async request => {
      const { turnId, claimId } = claimOf(request)
      const { task, tenant } = await held.requireHeldTask(request, turnId, claimId)
      const uploader = { tenant, caller: `turn ${turnId}`, uploadedFor: task }
      return upload(request, uploader, async file => ({ file: toFile(await db.transaction(tx => files.complete(tx, file))) }))
    })
  })
}
