/** Reads the messages of a task, those of a running turn included. */
import { listMessagesQuery, messageIndexSchema, messageSchema, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { listLiveMessages } from '../../../log/live-messages.ts'
import { requireTask } from '../../../store/reads/tasks.ts'
import type { Services } from '../../services.ts'
import { pageOf, params, readingOne } from './task-schemas.ts'

export function messageRoutes(scope: FastifyInstance, { databaseFor, reader, spilling, config: { limits } }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.get(
    '/tasks/:id/messages',
    {
      config: readingOne,
      schema: { tags: ['tasks'], params, querystring: listMessagesQuery, response: { 200: pageOf(messageSchema, z.int()) } },
    },
    async request => {
      const { id } = request.params
      const { tenant } = request.principal
      const db = databaseFor(request.principal)
      await requireTask(db, tenant, id)
      const page = await listLiveMessages(db, reader, tenant, id, request.query, limits.pageBytes)
      return request.query.inline === 'true' ? spilling.putBack(db, tenant, page, limits.pageBytes) : page
    },
  )

  app.get(
    '/tasks/:id/messages/:index',
    {
      config: readingOne,
      schema: {
        ...{ tags: ['tasks'], params: params.extend({ index: messageIndexSchema }) },
        response: { 200: z.object({ message: messageSchema }) },
      },
    },
    async ({ params: { id, index }, principal }) => {
      const { tenant } = principal
      const db = databaseFor(principal)
      await requireTask(db, tenant, id)
      const { data } = await listLiveMessages(db, reader, tenant, id, { after: index - 1, limit: 1 }, limits.pageBytes)
      const message = data.find(found => found.index === index)
      if (!message) throw new RivuletError('not_found', 'No such message in this task')
      return { message }
    },
  )
}
