/** Renames a task, runs its last turn again, and exports it. */
import { Readable } from 'node:stream'
import { changeTaskBody, type Json, taskIdSchema, taskSchema, turnSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { exportTask } from '../../../store/reads/export-task.ts'
import { requireTask } from '../../../store/reads/read.ts'
import { toFullTurn, toTask, toTurn } from '../../../store/rows.ts'
import type { AcceptedTurn } from '../../../store/tasks/accept/create-task.ts'
import { changeTask } from '../../../store/tasks/change-task.ts'
import { retryTurn } from '../../../store/tasks/retry-turn.ts'
import { createAcceptWork } from '../../requests/accept-work.ts'
import { respondOnce, sendResponse } from '../../requests/idempotent.ts'
import { startRequestSpan } from '../../requests/request-span.ts'
import type { Services } from '../../services.ts'

const params = z.object({ id: taskIdSchema })
const exported = { description: 'Lines of JSON', content: { 'application/x-ndjson': { schema: z.string() } } }

export function taskChangeRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, relay, tracer } = services
  const { limits } = services.config
  const { requireShare, announce } = createAcceptWork(services, scope.log)
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.patch(
    '/tasks/:id',
    {
      config: { access: { scope: 'tasks:write' } },
      schema: { tags: ['tasks'], params, body: changeTaskBody, response: { 200: z.object({ task: taskSchema }) } },
    },
    async ({ params: { id }, body, principal: { tenant } }, reply) => {
      const task = await databaseFor(tenant).transaction(tx => changeTask(tx, tenant, id, body, limits.bodyBytes))
      return sendResponse(reply, { status: 200, body: { task: toTask(task) } as Json, replayed: false })
    },
  )

  app.post(
    '/tasks/:id/retry',
    {
      config: { access: { scope: 'tasks:write', token: 'send' }, addsWork: true },
      schema: { tags: ['tasks'], params, body: z.strictObject({}).nullish(), response: { 202: z.object({ turn: turnSchema }) } },
    },
    async (request, reply) => {
      const { tenant } = request.principal
      await requireShare(request)
      const span = startRequestSpan(tracer, request)
      let work: AcceptedTurn | undefined
      const response = await respondOnce(databaseFor(tenant), request, async tx => {
        work = await retryTurn(tx, tenant, request.params.id, limits.queuedTurns, span.traceparent)
        return { status: 202, body: { turn: toTurn(work.turn) } as Json }
      }).catch(span.refused)
      relay.kick()
      if (work) await announce(work)
      span.accepted(work)
      return sendResponse(reply, response)
    },
  )

  app.get(
    '/tasks/:id/export',
    { config: { access: { scope: 'tasks:read', token: 'read' } }, schema: { tags: ['tasks'], params, response: { 200: exported } } },
    async ({ params: { id }, principal: { tenant, token } }, reply) => {
      const db = databaseFor(tenant)
      await requireTask(db, tenant, id)
      const lines = exportTask(db, tenant, id, row => (token ? toTurn(row) : toFullTurn(row)))
      return sendLines(reply, lines)
    },
  )
}

function sendLines(reply: FastifyReply, lines: AsyncIterable<string>): FastifyReply {
  return reply.type('application/x-ndjson').send(Readable.from(lines))
}
