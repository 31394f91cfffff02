/** Subscribing: what a viewer asks for, and its open response. */
import * as contract from '@rivulet/contract/events'
import type { StreamFormat } from '@rivulet/contract/fields'
import { type Cursor, origin, RivuletError, requireCursor, type TaskId } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Admission } from '../../../access/open-streams.ts'
import { mayRead } from '../../../access/principal.ts'
import { createTaskCheck, requireTask } from '../../../store/reads/tasks.ts'
import { hasTurn } from '../../../store/reads/turns.ts'
import type { Dialect, Formats } from '../../../stream/dialects/dialect.ts'
import { respondIn } from '../../../stream/dialects/dialect-response.ts'
import { beginInDialect, openStream } from '../../../stream/dialects/open-stream.ts'
import { createTree, type Tree } from '../../../stream/many/watch-tree.ts'
import type { SseResponse } from '../../../stream/sse-response.ts'
import { findPlace, type StreamRequest } from '../../../stream/viewer/viewer-place.ts'
import { respondWithEvents } from '../../event-response.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export type EventStream = ReturnType<typeof createEventStream>

/** Without a dialect, the stream has our own events. `turnNumber` is for dialects of one turn; default: the first that has not ended. */
type DialectRequest = { dialect?: Dialect | undefined; turnNumber?: number | undefined; isContinued?: boolean | undefined }

/** Responds to a request with a task's event stream. */
export function createEventStream({ databaseFor, hub, reader, streams, writers, metrics, isDraining }: Services, formats: Formats) {
  const checkTask = createTaskCheck(databaseFor)
  return { stream, streamIn, wants, reserve, checkTurn, dialectOf }

  function dialectOf(format: StreamFormat | undefined): Dialect | undefined {
    return format && formats[format]
  }

  async function checkTurn({ principal }: FastifyRequest, task: TaskId, turnNumber: number): Promise<void> {
    const db = databaseFor(principal)
    await requireTask(db, principal.tenant, task)
    if (!(await hasTurn(db, principal.tenant, task, turnNumber))) throw new RivuletError('not_found', 'No such turn in this task')
  }

  function wants(request: FastifyRequest): boolean {
    return (request.headers.accept ?? '').includes('text/event-stream')
  }

  /** A place for the stream, before anything is done that could not be taken back. `tasks:write` alone does not allow a stream. */
  function reserve({ principal }: FastifyRequest, ...tasks: TaskId[]): Admission {
    if (isDraining()) throw new RivuletError('draining', 'This process is stopping')
    if (!mayRead(principal)) throw new RivuletError('forbidden', 'This key or token does not have the required scope')
    return streams.admit(principal, tasks)
  }

  async function stream(
    task: TaskId,
    reply: FastifyReply,
    request: StreamRequest & DialectRequest,
    admitted?: Admission,
  ): Promise<FastifyReply> {
    const admission = admitted ?? reserve(reply.request, task)
    return streamIn(admission, task, reply.request, () => open(task, reply, request, admission))
  }

  /** Checks that the task exists, and opens its stream. A stream that does not open gives its place back. */
  async function streamIn(
    admission: Admission,
    task: TaskId,
    { principal }: FastifyRequest,
    open: () => Promise<FastifyReply>,
  ): Promise<FastifyReply> {
    admission.watches(task)
    try {
      // A task that runs is known here, but not to whom it may be shown.
      if (principal.agents || !hub.isRunning(principal.tenant, task)) await checkTask(principal, task)
      return await open()
    } catch (error) {
      admission.over()
      throw error
    }
  }

  async function open(
    task: TaskId,
    reply: FastifyReply,
    request: StreamRequest & DialectRequest,
    admission: Admission,
  ): Promise<FastifyReply> {
    const { tenant } = reply.request.principal
    const { dialect } = request
    // A turn that ended long ago was trimmed from the log of its task, which may go on without it.
    const isTrimmed = request.cursor === 'log' && !(await reader.hasTurn(task, request.turnNumber ?? 0))
    const place = await findPlace(hub, reader, { tenant, task }, isTrimmed && !dialect?.stored ? { ...request, cursor: null } : request)
    if (!place) {
      admission.over()
      return reply.status(204).send()
    }
    const begin = dialect ? await beginInDialect(reader, task, place.begin) : place.begin
    const stored = isTrimmed || begin.kind === 'snapshot' ? await dialect?.stored?.() : null
    if (dialect && stored) {
      admission.over()
      const text = stored.map((chunk, at) => dialect.encode(chunk, place.feed.position(), at === stored.length - 1)).join('')
      return reply
        .headers(dialect.headers)
        .type('text/event-stream; charset=utf-8')
        .send(text + dialect.ending)
    }
    const turnNumber = dialect?.scope === 'turn' ? request.turnNumber : undefined
    const wanted = { task, turnNumber, isContinued: request.isContinued, begin }
    const start = { begin, isFollowing: request.isFollowing }
    if (!dialect) return respondWithEvents(reply, { admission, metrics, writers, task }, response => hub.watch(place.feed, response, start))
    const tree = dialect.hasChildren ? treeFor(reply) : null
    const stream = await openStream(reader, dialect, { ...wanted, follow: tree?.follow })
    const headers = { ...dialectHeaders, ...dialect.headers }
    return respondWithEvents(reply, { admission, metrics, writers, headers, task }, response => {
      const translated = respondIn(dialect, stream, response, error =>
        reply.log.error({ err: error, task, format: dialect.name }, 'could not convert an event to the format of the caller'),
      )
      const watch = (target: SseResponse) => hub.watch(place.feed, target, start)
      const watching = tree ? tree.watch(task, translated, watch) : watch(translated)
      return { ...watching, drained: () => translated.drained() && watching.drained() }
    })
  }

  function treeFor({ request: { principal }, log }: FastifyReply): Tree {
    const check = (child: TaskId) => requireTask(databaseFor(principal), principal.tenant, child)
    const onError = (error: unknown) => log.warn({ err: error }, 'a stream of a task and its children was cut')
    return createTree({ hub, log: reader, onError }, { tenant: principal.tenant, check })
  }
}

/** Other formats cannot send `connection: close`, because with it `fetch` takes a response that is destroyed for one that has ended. */
export const dialectHeaders = { 'keep-alive': 'timeout=0' }

export function eventRoutes(scope: FastifyInstance, events: EventStream): void {
  serve(scope, contract.watchTask, async (request, reply) => {
    requireEvents(request)
    const { token, after, from, follow, format } = request.query
    const dialect = events.dialectOf(format)
    const { cursor, isInside } = placeOf(request.headers['last-event-id'] ?? after, format !== undefined)
    const turnNumber = request.query.turn === undefined ? undefined : Number(request.query.turn)
    if (turnNumber !== undefined) await events.checkTurn(request, request.params.id, turnNumber)
    const start = cursor ?? (from === 'start' ? origin : null)
    const wanted = { cursor: start, isInside, isFollowing: follow === 'true', dialect, turnNumber }
    return events.stream(request.params.id, reply, wanted).catch(error => comeBackLater(reply, token, error))
  })
}

/** For routes that return nothing but events. */
export function requireEvents({ headers: { accept } }: FastifyRequest): void {
  if (accept !== undefined && !/text\/event-stream|text\/\*|\*\/\*/.test(accept))
    throw new RivuletError('not_acceptable', 'This route returns text/event-stream; Accept must allow it')
}

/** A request with the token in its URL is from an EventSource, which gives up for good at anything but a 200: it is asked to come back later. */
export function comeBackLater(reply: FastifyReply, token: string | undefined, error: unknown): FastifyReply {
  if (token === undefined || !(error instanceof RivuletError) || !isCrowded.has(error.code)) throw error
  reply.errorCode = error.code
  return reply.type('text/event-stream').send('retry: 15000\n')
}

const isCrowded: ReadonlySet<string> = new Set(['too_many_streams', 'overloaded', 'draining'])

/** `Last-Event-ID` takes precedence over `?after=`. In some formats the id of a chunk inside an event is its cursor and a plus. */
export function placeOf(given: string | string[] | undefined, hasFormat: boolean): { cursor: Cursor | null; isInside: boolean } {
  if (given === undefined) return { cursor: null, isInside: false }
  const isInside = hasFormat && typeof given === 'string' && given.endsWith('+')
  return { cursor: requireCursor(isInside ? given.slice(0, -1) : given), isInside }
}
