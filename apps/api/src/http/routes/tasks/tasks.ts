/** Lists, reads, forks, cancels and deletes tasks. A response is sent only after the commit. */
import * as contract from '@rivulet/contract/tasks'
import type { Json } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { latestTurns } from '../../../store/reads/latest-turns.ts'
import { listTasks } from '../../../store/reads/list-tasks.ts'
import { summarizeTasks } from '../../../store/reads/task-summaries.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { toFullTurn, toTask, toTurn } from '../../../store/rows.ts'
import { getState } from '../../../store/states/task-state.ts'
import { forkTask } from '../../../store/tasks/fork-task.ts'
import { lockTask } from '../../../store/tasks/held-task.ts'
import { removeTask } from '../../../store/tasks/remove-task.ts'
import { createAcceptWork } from '../../requests/accept-work.ts'
import { createAudit } from '../../requests/audited.ts'
import { earlierResponse, respondOnce, sendResponse } from '../../requests/idempotent.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function taskRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, listsFor, ending, relay, announcer } = services
  const { limits } = services.config
  const { requireShare, accept, commitTurn } = createAcceptWork(services, scope.log)
  const { audited, note } = createAudit(services)

  serve(scope, contract.listTasks, async request => {
    const { tenant } = request.principal
    const { view, ...query } = request.query
    const given = Object.entries(query).filter(([key]) => key.startsWith('metadata.'))
    const filter = { ...query, metadata: Object.fromEntries(given.map(([key, value]) => [key.slice('metadata.'.length), String(value)])) }
    const list = view === 'summary' ? summarizeTasks : listTasks
    return list(listsFor(request.principal), tenant, filter, limits.pageBytes)
  })

  serve(scope, contract.getTask, async ({ params: { id }, principal }) => {
    const { tenant, token } = principal
    const db = databaseFor(principal)
    const task = await getTask(db, tenant, id)
    const state = await getState(db, tenant, id)
    const turns = await latestTurns(db, tenant, id, limits.pageBytes, token ? toTurn : toFullTurn)
    return { task, turns, ...(state.version > 0 && { state }) }
  })

  serve(scope, contract.deleteTask, async request => {
    const { id } = request.params
    const { tenant } = request.principal
    await audited(databaseFor(tenant), request, { target: id }, tx => removeTask(tx, request.principal, id))
    // The log of a task that has ended expires by itself, too.
    await announcer.remove(id).catch(() => {})
    return null
  })

  serve(scope, contract.forkTask, async (request, reply) => {
    await requireShare(request)
    const { response } = await accept(request, traceparent =>
      commitTurn(
        request,
        tx => forkTask(tx, request.principal, request.params.id, request.body ?? {}, limits.queuedTurns, traceparent),
        ({ task, turn }) => ({ status: 201, body: { task: toTask(task), turn: toTurn(turn) } as Json }),
        request.params.id,
      ),
    )
    return sendResponse(reply, response)
  })

  serve(scope, contract.cancelTask, async (request, reply) => {
    const { id } = request.params
    const { principal } = request
    const before = await earlierResponse(databaseFor(principal.tenant), request)
    if (before) return sendResponse(reply, before)
    const { scope: turns = 'all' } = request.body ?? {}
    const change = { target: id, details: { scope: turns } } as const
    await ending.cancel(principal, id, request.body ?? {}, note(request, change))
    relay.kick()
    return sendResponse(
      reply,
      await respondOnce(databaseFor(principal.tenant), request, async tx => ({
        status: 200,
        body: { task: toTask(await lockTask(tx, principal, id)) } as Json,
      })),
    )
  })
}
