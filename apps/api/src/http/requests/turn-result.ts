/**
 * Responds with the result of a turn once it has ended, for routes of other protocols, whose callers wait as long as it takes.
 *
 * A caller that waits has the limits of an open stream. Every 15 s it gets a space, which JSON allows before a value, so that no proxy or client takes
 * the connection for dead; from then on the status is 200. A caller that leaves ends its wait, and not the turn.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { hasEnded, RivuletError, type TaskId, untilAborted, type Wait } from '@rivulet/protocol'
import type { FastifyReply } from 'fastify'
import type { Admission } from '../../access/open-streams.ts'
import type { Principal } from '../../access/principal.ts'
import { taskNotFound } from '../../store/connection/tenant.ts'
import { getTurn } from '../../store/reads/turns.ts'
import type { WaitOutcome } from '../../stream/channel.ts'
import { questionsIn } from '../../stream/task-view.ts'
import { countRequest } from '../http-metrics.ts'
import type { Services } from '../services.ts'

/** What the caller gets. */
export type Result = { status?: number; body: object }

type WantedResult = {
  task: TaskId
  turnNumber: number
  admission: Admission
  /** Whether the caller gets the result before the turn has ended, because the turn asks it for something. */
  asks?: ((waits: readonly Wait[] | undefined) => boolean) | undefined
  read: () => Promise<Result>
}

const keepAliveMs = 15_000

export function createTurnResults({ databaseFor, hub, metrics }: Pick<Services, 'databaseFor' | 'hub' | 'metrics'>) {
  return { send }

  /** `admission` is over when this resolves. */
  async function send(reply: FastifyReply, { task, turnNumber, admission, asks, read }: WantedResult): Promise<FastifyReply> {
    const leaving = new AbortController()
    const leave = () => leaving.abort(new Error('The wait is over'))
    const alive = setInterval(() => keepAlive(reply), keepAliveMs)
    reply.hasWaited = true
    reply.raw.once('close', leave)
    admission.watches(task)
    admission.opened({ leave, sendToken: () => true })
    metrics.waits.inc()
    try {
      const outcome = await wait(reply.request.principal, { task, turnNumber, asks }, leaving.signal)
      if (reply.raw.destroyed) return reply.hijack()
      if (outcome === 'deleted') throw taskNotFound()
      if (outcome === 'left') {
        // Another try of the same request would be another turn.
        reply.header('x-should-retry', 'false')
        throw new RivuletError('draining', 'This process is stopping; the turn goes on, and its result can be read later')
      }
      return finish(reply, await read())
    } catch (error) {
      if (!reply.raw.headersSent) throw error
      // The status is sent: the caller notices by the broken connection.
      reply.log.warn({ err: error, task }, 'a wait failed after its response had begun')
      reply.raw.destroy()
      return reply
    } finally {
      clearInterval(alive)
      reply.raw.off('close', leave)
      admission.over()
      metrics.waits.dec()
    }
  }

  async function wait(
    principal: Principal,
    { task, turnNumber, asks }: Pick<WantedResult, 'task' | 'turnNumber' | 'asks'>,
    signal: AbortSignal,
  ): Promise<WaitOutcome> {
    const { tenant } = principal
    for (;;) {
      const feed = await untilAborted(hub.open(tenant, task), signal)
      // Read after the feed is open: a turn that ends after this read is announced to the feed.
      const { status, waits } = await getTurn(databaseFor(principal), tenant, task, turnNumber)
      if (hasEnded(status)) return 'ended'
      if (asks?.(waits)) return 'questions'
      const outcome = await hub.untilEnded(feed, turnNumber, signal, asks ? questionsIn(waits) : null)
      if (outcome !== 'questions') return outcome
      // The feed may not have the response yet that this caller has just given.
      await delay(20)
    }
  }

  function finish(reply: FastifyReply, { status = 200, body }: Result): FastifyReply {
    if (!reply.raw.headersSent) return reply.status(status).send(body)
    if (status !== 200) throw new Error('The result is an error, and the status was sent')
    countRequest(metrics, reply.request, 200)
    reply.raw.end(JSON.stringify(body))
    return reply
  }
}

function keepAlive(reply: FastifyReply): void {
  if (!reply.raw.headersSent) {
    const headers = Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]))
    reply.hijack().raw.writeHead(200, { ...headers, 'content-type': 'application/json; charset=utf-8' })
  }
  reply.raw.write(' ')
}
