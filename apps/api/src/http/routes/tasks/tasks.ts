/** Creates, lists, reads, continues, forks, cancels and deletes tasks; reads their turns and messages. A 201 or 202 is sent only after the commit. */
import {
  attemptSchema,
  cancelTaskBody,
  createTaskBody,
  createTurnBody,
  forkTaskBody,
  type Json,
  listMessagesQuery,
  listTasksQuery,
  messageIndexSchema,
  messageSchema,
  RivuletError,
  stateSchema,
  streamFormatSchema,
  taskIdSchema,
  taskSchema,
  taskSummarySchema,
  turnNumberSchema,
  turnSchema,
  waitSchema,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { requirePublicHost } from '../../../feed/private-addresses.ts'
import { listLiveMessages } from '../../../log/live-messages.ts'
import { latestTurns } from '../../../store/reads/latest-turns.ts'
import { getTask, getTurn, listTasks, requireTask } from '../../../store/reads/read.ts'
import { summarizeTasks } from '../../../store/reads/task-summaries.ts'
import { toFullTurn, toTask, toTurn } from '../../../store/rows.ts'
import { getState } from '../../../store/states/task-state.ts'
import type { AcceptedTurn } from '../../../store/tasks/accept/create-task.ts'
import { createTurn } from '../../../store/tasks/accept/create-turn.ts'
import type { CancelBegun } from '../../../store/tasks/cancel-task.ts'
import { forkTask } from '../../../store/tasks/fork-task.ts'
import { removeTask } from '../../../store/tasks/remove-task.ts'
import { listAttempts } from '../../../store/turns/attempts.ts'
import { createAcceptWork } from '../../requests/accept-work.ts'
import { earlierResponse, markReplay, respondOnce, sendResponse } from '../../requests/idempotent.ts'
import { startRequestSpan } from '../../requests/request-span.ts'
import { createTurnWaits } from '../../requests/turn-waits.ts'
import type { Services } from '../../services.ts'
import { dialectOf, type EventStream } from './events.ts'

const params = z.object({ id: taskIdSchema })
const accepted = z.object({ task: taskSchema, turn: turnSchema.optional() })
/** What a response has besides if it waited for the end of a turn, and what it has if that did not come in time. */
const finished = { messages: z.array(messageSchema).optional(), nextCursor: z.int().nullish() }
const underWay = z.object({ task: taskSchema, turn: turnSchema, cursor: z.string() })
const waiting = z.strictObject({ wait: waitSchema.optional() })
const reading = { access: { scope: 'tasks:read' } } as const
const writing = { access: { scope: 'tasks:write' } } as const
const readingOne = { access: { scope: 'tasks:read', token: 'read' } } as const
const creating = { ...writing, addsWork: true } as const
const sending = { access: { scope: 'tasks:write', token: 'send' }, addsWork: true } as const
const canceling = { access: { scope: 'tasks:write', token: 'cancel' } } as const

export function taskRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, ending, waiting: turnWaiting, relay, announcer, reader, spilling, tracer } = services
  const { limits, webhooks } = services.config
  const { requireShare, acceptTask, announce } = createAcceptWork(services, scope.log)
  const waits = createTurnWaits(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.post(
    '/tasks',
    {
      config: creating,
      schema: {
        tags: ['tasks'],
        querystring: z.strictObject({ format: streamFormatSchema.optional(), wait: waitSchema.optional() }),
        body: createTaskBody,
        response: { 200: accepted.extend(finished), 201: accepted.extend(finished), 202: underWay },
      },
    },
    async (request, reply) => {
      const { format, wait } = request.query
      const isStream = events.wants(request) || format !== undefined
      if (wait !== undefined && isStream)
        throw new RivuletError(
          'bad_request',
          'A response cannot both stream and wait: leave out wait, or format and text/event-stream in Accept',
        )
      const { onEnd } = request.body
      if (onEnd && !webhooks.allowPrivate) requirePublicHost(onEnd.url, '/onEnd')
      await requireShare(request)
      const admission = isStream || wait !== undefined ? events.reserve(request) : null
      const span = startRequestSpan(tracer, request)
      const { response, work, dispatch } = await acceptTask(request, request.body, span.traceparent).catch(error => {
        admission?.over()
        return span.refused(error)
      })
      if (failpoint) await failpoint('accepted')
      if (!isStream) dispatch()
      if (work) await announce(work)
      span.accepted(work)
      if (!admission) return sendResponse(reply, response)
      const { task, turn } = accepted.parse(response.body)
      if (wait !== undefined && !turn) {
        admission.over()
        return sendResponse(reply, response)
      }
      markReplay(reply, response.replayed)
      if (wait !== undefined && turn) {
        const wanted = { task: task.id, number: turn.number, waitMs: wait, status: response.status, accepted: { task, turn } }
        return waits.respond(reply, wanted, admission)
      }
      // The viewer first: it is there when the agent begins to speak.
      return events
        .stream(task.id, reply, { cursor: null, isFollowing: false, dialect: dialectOf(format), turnNumber: turn?.number }, admission)
        .finally(dispatch)
    },
  )

  const listed = z.union([pageOf(taskSchema, z.string()), pageOf(taskSummarySchema, z.string())])
  app.get(
    '/tasks',
    { config: reading, schema: { tags: ['tasks'], querystring: listTasksQuery, response: { 200: listed } } },
    async request => {
      const { tenant } = request.principal
      const { view, ...query } = request.query
      const given = Object.entries(query).filter(([key]) => key.startsWith('metadata.'))
      const filter = { ...query, metadata: Object.fromEntries(given.map(([key, value]) => [key.slice('metadata.'.length), String(value)])) }
      const list = view === 'summary' ? summarizeTasks : listTasks
      return list(databaseFor(tenant), tenant, filter, limits.pageBytes)
    },
  )

  const detail = z.object({ task: taskSchema, turns: z.array(turnSchema), state: stateSchema.optional() })
  app.get(
    '/tasks/:id',
    { config: readingOne, schema: { tags: ['tasks'], params, response: { 200: detail } } },
    async ({ params: { id }, principal: { tenant, token } }) => {
      const db = databaseFor(tenant)
      const task = await getTask(db, tenant, id)
      const state = await getState(db, tenant, id)
      const turns = await latestTurns(db, tenant, id, limits.pageBytes, token ? toTurn : toFullTurn)
      return { task, turns, ...(state.version > 0 && { state }) }
    },
  )

  app.delete(
    '/tasks/:id',
    { config: writing, schema: { tags: ['tasks'], params, response: { 204: z.null() } } },
    async ({ params: { id }, principal: { tenant } }, reply) => {
      await removeTask(databaseFor(tenant), tenant, id)
      // The log of a task that has ended expires by itself, too.
      await announcer.remove(id).catch(() => {})
      return reply.status(204).send(null)
    },
  )

  const turnAccepted = z.object({ turn: turnSchema })
  app.post(
    '/tasks/:id/turns',
    {
      config: sending,
      schema: {
        ...{ tags: ['tasks'], params, querystring: waiting, body: createTurnBody },
        response: { 200: accepted.extend(finished), 202: turnAccepted.extend(underWay.partial().shape) },
      },
    },
    async (request, reply) => {
      const { tenant, token } = request.principal
      const { wait } = request.query
      const { id } = request.params
      // To interrupt is to cancel, too.
      if (request.body.ifBusy === 'interrupt' && token && !token.can.includes('cancel'))
        throw new RivuletError('forbidden', 'This token does not have the right to cancel')
      if (request.body.ifBusy !== 'interrupt') await requireShare(request)
      const admission = wait === undefined ? null : events.reserve(request, id)
      const span = startRequestSpan(tracer, request)
      let work: AcceptedTurn | undefined
      let begun: CancelBegun | undefined
      const answer = await respondOnce(databaseFor(tenant), request, async tx => {
        if (request.body.ifBusy === 'interrupt') begun = await ending.beginInterrupt(tx, tenant, id, request.body.after === undefined)
        work = await createTurn(tx, tenant, id, request.body, limits.queuedTurns, span.traceparent)
        return { status: 202, body: toBody({ turn: toTurn(work.turn) }) }
      }).catch(error => {
        admission?.over()
        return span.refused(error)
      })
      if (begun) await ending.completeInterrupt(begun)
      relay.kick()
      if (work?.declined) await turnWaiting.changed(work.declined)
      if (work) await announce(work)
      span.accepted(work)
      if (!admission || wait === undefined) return sendResponse(reply, answer)
      markReplay(reply, answer.replayed)
      const { turn } = turnAccepted.parse(answer.body)
      return waits.respond(reply, { task: id, number: turn.number, waitMs: wait, status: 200, accepted: { turn } }, admission)
    },
  )

  app.post(
    '/tasks/:id/fork',
    { config: creating, schema: { tags: ['tasks'], params, body: forkTaskBody.nullish(), response: { 201: accepted } } },
    async (request, reply) => {
      const { tenant } = request.principal
      await requireShare(request)
      const span = startRequestSpan(tracer, request)
      let work: AcceptedTurn | undefined
      const response = await respondOnce(databaseFor(tenant), request, async tx => {
        work = await forkTask(tx, tenant, request.params.id, request.body ?? {}, limits.queuedTurns, span.traceparent)
        return { status: 201, body: toBody({ task: toTask(work.task), turn: toTurn(work.turn) }) }
      }).catch(span.refused)
      relay.kick()
      if (work?.isQueued) await announce(work)
      span.accepted(work)
      return sendResponse(reply, response)
    },
  )

  app.get(
    '/tasks/:id/turns/:number',
    {
      config: readingOne,
      schema: {
        ...{ tags: ['tasks'], params: params.extend({ number: turnNumberSchema }), querystring: waiting },
        response: { 200: turnAccepted.extend({ task: taskSchema.optional(), ...finished }), 202: underWay },
      },
    },
    async (request, reply) => {
      const { id, number } = request.params
      const { tenant, token } = request.principal
      const { wait } = request.query
      const turn = await getTurn(databaseFor(tenant), tenant, id, number, token ? toTurn : toFullTurn)
      if (wait === undefined) return { turn }
      return waits.respond(reply, { task: id, number, waitMs: wait, status: 200 }, events.reserve(request, id))
    },
  )

  const attemptList = z.object({ data: z.array(attemptSchema) })
  app.get(
    '/tasks/:id/turns/:number/attempts',
    {
      config: readingOne,
      schema: { tags: ['tasks'], params: params.extend({ number: turnNumberSchema }), response: { 200: attemptList } },
    },
    async ({ params: { id, number }, principal: { tenant, token } }) => ({
      data: await listAttempts(databaseFor(tenant), tenant, id, number, token === undefined),
    }),
  )

  app.post(
    '/tasks/:id/cancel',
    {
      config: canceling,
      schema: { tags: ['tasks'], params, body: cancelTaskBody.nullish(), response: { 200: z.object({ task: taskSchema }) } },
    },
    async (request, reply) => {
      const { id } = request.params
      const { tenant } = request.principal
      const db = databaseFor(tenant)
      const before = await earlierResponse(db, request)
      if (before) return sendResponse(reply, before)
      await ending.cancel(tenant, id, request.body ?? {})
      relay.kick()
      return sendResponse(
        reply,
        await respondOnce(db, request, async tx => ({ status: 200, body: toBody({ task: await getTask(tx, tenant, id) }) })),
      )
    },
  )

  app.get(
    '/tasks/:id/messages',
    {
      config: readingOne,
      schema: { tags: ['tasks'], params, querystring: listMessagesQuery, response: { 200: pageOf(messageSchema, z.int()) } },
    },
    async request => {
      const { id } = request.params
      const { tenant } = request.principal
      const db = databaseFor(tenant)
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
    async ({ params: { id, index }, principal: { tenant } }) => {
      const db = databaseFor(tenant)
      await requireTask(db, tenant, id)
      const { data } = await listLiveMessages(db, reader, tenant, id, { after: index - 1, limit: 1 }, limits.pageBytes)
      const message = data.find(found => found.index === index)
      if (!message) throw new RivuletError('not_found', 'No such message in this task')
      return { message }
    },
  )
}

function pageOf<T extends z.ZodType, C extends z.ZodType>(item: T, cursor: C) {
  return z.object({ data: z.array(item), nextCursor: cursor.nullable() })
}

/** Entities are JSON by construction. */
function toBody(value: object): Json {
  return value as Json
}
