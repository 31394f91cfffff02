/**
 * Responds once a turn has ended, with the turn and its messages in one JSON; or, when the wait is over before that, with 202 and where to go on.
 *
 * The turn is committed before the wait begins, so a caller that created it never gets an error because of the wait. A wait has the limits of an open
 * stream. It ends early when this process stops, when the caller's key is revoked, and when the client disconnects.
 */
import {
  type Cursor,
  hasEnded,
  type Message,
  maxPageSize,
  origin,
  type Task,
  type TaskId,
  type Turn,
  untilAborted,
} from '@rivulet/protocol'
import type { FastifyReply } from 'fastify'
import type { Admission } from '../../access/open-streams.ts'
import type { Principal } from '../../access/principal.ts'
import { taskNotFound } from '../../store/connection/tenant.ts'
import { listMessages } from '../../store/reads/messages.ts'
import { getTask } from '../../store/reads/tasks.ts'
import { getTurn } from '../../store/reads/turns.ts'
import { toFullTurn, toTurn } from '../../store/rows.ts'
import type { WaitOutcome } from '../../stream/channel.ts'
import type { Services } from '../services.ts'

type AwaitedTurn = {
  task: TaskId
  number: number
  waitMs: number
  /** The status of the response when the turn has ended. */
  status: number
  /** As committed by this request, for a response while Postgres is unavailable. */
  accepted?: { task?: Task; turn: Turn }
}

type Waited = { how: WaitOutcome; cursor: Cursor }

export function createTurnWaits({ databaseFor, hub, metrics, config: { limits } }: Services) {
  return { respond }

  /** @param admission is over when this resolves. */
  async function respond(reply: FastifyReply, wanted: AwaitedTurn, admission: Admission): Promise<FastifyReply> {
    const leaving = new AbortController()
    const leave = () => leaving.abort(new Error('The wait is over'))
    const timer = setTimeout(leave, wanted.waitMs)
    reply.hasWaited = true
    reply.raw.once('close', leave)
    admission.watches(wanted.task)
    admission.opened({ leave, sendToken: () => true })
    metrics.waits.inc()
    try {
      const { how, cursor } = await wait(reply.request.principal, wanted, leaving.signal).catch(error => {
        if (!leaving.signal.aborted) reply.log.warn({ err: error, task: wanted.task }, 'could not wait for the end of a turn')
        return { how: 'left', cursor: origin } satisfies Waited
      })
      if (reply.raw.destroyed) return reply.hijack()
      if (how === 'deleted') throw taskNotFound()
      return await describe(reply, wanted, cursor)
    } finally {
      clearTimeout(timer)
      reply.raw.off('close', leave)
      admission.over()
      metrics.waits.dec()
    }
  }

  async function wait(principal: Principal, { task, number }: AwaitedTurn, signal: AbortSignal): Promise<Waited> {
    const feed = await untilAborted(hub.open(principal.tenant, task), signal)
    // Read after the feed is open: a turn that ends after this read is announced to the feed.
    const stored = await getTurn(databaseFor(principal), principal.tenant, task, number)
    const how = hasEnded(stored.status) ? 'ended' : await hub.untilEnded(feed, number, signal)
    return { how, cursor: feed.position() }
  }

  async function describe(reply: FastifyReply, wanted: AwaitedTurn, cursor: Cursor): Promise<FastifyReply> {
    const { accepted, status } = wanted
    const result = await readResult(reply, wanted).catch(error => {
      if (!accepted) throw error
      return accepted
    })
    if ('messages' in result) return reply.status(status).send(result)
    const { task, number, waitMs } = wanted
    return reply
      .status(202)
      .header('location', `/v1/tasks/${task}/turns/${number}?wait=${waitMs}ms`)
      .send({ ...result, cursor })
  }

  async function readResult(
    { request }: FastifyReply,
    { task: id, number }: AwaitedTurn,
  ): Promise<TurnResult | Omit<TurnResult, 'messages'>> {
    const { tenant, token } = request.principal
    const db = databaseFor(request.principal)
    const turn = await getTurn(db, tenant, id, number, token ? toTurn : toFullTurn)
    const task = await getTask(db, tenant, id)
    if (!hasEnded(turn.status)) return { task, turn }
    const { data, nextCursor } = await listMessages(db, tenant, id, { turn: turn.joinedTo ?? number, limit: maxPageSize }, limits.pageBytes)
    return { task, turn, messages: data, nextCursor }
  }
}

/** `nextCursor` is the `after` of `GET …/messages?turn=` for the messages that did not fit a page; null when all are here. */
type TurnResult = { task: Task; turn: Turn; messages: Message[]; nextCursor?: number | null }
