/** Reads the messages of a task, those of a running turn included. */
import * as contract from '@rivulet/contract/messages'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { listLiveMessages } from '../../../log/live-messages.ts'
import { requireTask } from '../../../store/reads/tasks.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function messageRoutes(scope: FastifyInstance, { databaseFor, reader, spilling, config: { limits } }: Services): void {
  serve(scope, contract.listMessages, async request => {
    const { id } = request.params
    const { tenant } = request.principal
    const db = databaseFor(request.principal)
    await requireTask(db, tenant, id)
    const page = await listLiveMessages(db, reader, tenant, id, request.query, limits.pageBytes)
    return request.query.inline === 'true' ? spilling.putBack(db, tenant, page, limits.pageBytes) : page
  })

  serve(scope, contract.getMessage, async ({ params: { id, index }, principal }) => {
    const { tenant } = principal
    const db = databaseFor(principal)
    await requireTask(db, tenant, id)
    const { data } = await listLiveMessages(db, reader, tenant, id, { after: index - 1, limit: 1 }, limits.pageBytes)
    const message = data.find(found => found.index === index)
    if (!message) throw new RivuletError('not_found', 'No such message in this task')
    return { message }
  })
}
