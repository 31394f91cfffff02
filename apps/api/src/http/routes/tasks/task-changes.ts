/** Renames a task, runs its last turn again, and exports it. */
import { Readable } from 'node:stream'
import * as tasks from '@rivulet/contract/tasks'
import * as turns from '@rivulet/contract/turns'
import type { Json } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { exportTask } from '../../../store/reads/export-task.ts'
import { requireTask } from '../../../store/reads/tasks.ts'
import { toFullTurn, toTask, toTurn } from '../../../store/rows.ts'
import { changeTask } from '../../../store/tasks/change-task.ts'
import { retryTurn } from '../../../store/tasks/retry-turn.ts'
import { taskTransaction } from '../../../store/tasks/task-line.ts'
import { removeSecrets, storeSecrets } from '../../../store/tasks/task-secrets.ts'
import { createAcceptWork } from '../../requests/accept-work.ts'
import { createAudit } from '../../requests/audited.ts'
import { sendResponse } from '../../requests/idempotent.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function taskChangeRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, vault } = services
  const { note } = createAudit(services)
  const { limits } = services.config
  const { requireShare, accept, commitTurn } = createAcceptWork(services, scope.log)

  serve(scope, tasks.changeTask, async (request, reply) => {
    const { id } = request.params
    const { secrets, ...changes } = request.body
    const { tenant } = request.principal
    const sealed = secrets && vault.seal(tenant, secrets)
    const task = await taskTransaction(databaseFor(tenant), id, async tx => {
      const changed = await changeTask(tx, request.principal, id, changes, limits.bodyBytes)
      const fields = Object.keys(changes)
      if (fields.length > 0) await note(request, { target: id, details: { fields } })(tx)
      if (sealed) await storeSecrets(tx, changed, null, sealed)
      else if (secrets === null) await removeSecrets(tx, changed)
      if (secrets !== undefined) await note(request, { action: sealed ? 'secrets.set' : 'secrets.removed', target: id })(tx)
      return changed
    })
    return sendResponse(reply, { status: 200, body: { task: toTask(task) } as Json, replayed: false })
  })

  serve(scope, turns.retryTurn, async (request, reply) => {
    await requireShare(request)
    const { response } = await accept(request, traceparent =>
      commitTurn(
        request,
        tx => retryTurn(tx, request.principal, request.params.id, limits.queuedTurns, traceparent),
        ({ turn }) => ({ status: 202, body: { turn: toTurn(turn) } as Json }),
        request.params.id,
      ),
    )
    return sendResponse(reply, response)
  })

  serve(scope, tasks.exportTask, async (request, reply) => {
    const { id } = request.params
    const { tenant, token } = request.principal
    const db = databaseFor(request.principal)
    await requireTask(db, tenant, id)
    if (request.method !== 'HEAD') await databaseFor(tenant).transaction(note(request, { target: id }))
    const lines = exportTask(db, tenant, id, row => (token ? toTurn(row) : toFullTurn(row)))
    return sendLines(reply, lines)
  })
}

function sendLines(reply: FastifyReply, lines: AsyncIterable<string>): FastifyReply {
  return reply.type('application/x-ndjson').send(Readable.from(lines))
}
