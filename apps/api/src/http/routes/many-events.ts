/** The events of several tasks on one stream. */
import * as contract from '@rivulet/contract/events'
import { maxStreamTasks, RivuletError, type TaskId } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { openChildrenOf } from '../../store/children/child-ends.ts'
import { requireTask, requireTasks } from '../../store/reads/tasks.ts'
import { watchMany } from '../../stream/many/watch-many.ts'
import { respondWithEvents } from '../event-response.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'
import { type EventStream, requireEvents } from './tasks/events.ts'

export function manyEventRoutes(
  scope: FastifyInstance,
  { databaseFor, hub, reader, writers, metrics }: Services,
  events: EventStream,
): void {
  serve(scope, contract.watchTasks, async (request, reply) => {
    requireEvents(request)
    const { principal } = request
    const { tenant } = principal
    const { tasks, children, follow } = request.body
    if (tasks.size > maxStreamTasks)
      throw new RivuletError('too_many_tasks', `A stream may have at most ${maxStreamTasks} tasks; open another for the rest`)
    await requireTasks(databaseFor(principal), tenant, [...tasks.keys()])
    const admission = events.reserve(request, ...tasks.keys())
    const db = databaseFor(principal)
    const openOf = (task: TaskId) => openChildrenOf(db, tenant, task)
    const check = (child: TaskId) => requireTask(db, tenant, child)
    const onError = (error: unknown) => reply.log.warn({ err: error }, 'a stream of several tasks was cut')
    return respondWithEvents(reply, { admission, metrics, writers }, response => ({
      ...watchMany({ hub, log: reader, onError }, response, {
        tenant,
        tasks,
        isFollowing: follow,
        children: children ? { openOf, check } : null,
      }),
      sendToken: () => false,
    }))
  })
}
