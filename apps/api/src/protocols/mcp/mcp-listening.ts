/**
 * A subscription of MCP: each task as it stands, and again whenever it asks for something else or has ended.
 *
 * The feed of a task shows that it has changed; what is sent is read from the rows, so it is what `tasks/get` returns. The stream ends, with the response to its
 * request, when all tasks have ended or this process stops. A client that leaves ends its stream and nothing else.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { RpcRequest } from '@rivulet/contract/json-rpc'
import { backoffMs, hasEnded, untilAborted } from '@rivulet/protocol'
import type { FastifyReply } from 'fastify'
import type { Admission } from '../../access/open-streams.ts'
import { respondWithEvents } from '../../http/event-response.ts'
import { dialectHeaders } from '../../http/routes/tasks/events.ts'
import type { Services } from '../../http/services.ts'
import { type TurnRow, toTurn } from '../../store/rows.ts'
import { questionsIn } from '../../stream/task-view.ts'
import { resultOf } from '../json-rpc.ts'
import { noticeOf } from './mcp-task.ts'

/** The tasks that a client listens to. */
export type Subscription = {
  rpc: RpcRequest
  turns: readonly TurnRow[]
  /** A task as it stands; undefined for one that is gone. */
  read: (id: string) => Promise<{ turn: TurnRow; task: object } | undefined>
}

export function createListening({ hub, metrics, writers }: Pick<Services, 'hub' | 'metrics' | 'writers'>) {
  /** `admission` is over when the response has ended. */
  return function listen(reply: FastifyReply, subscription: Subscription, admission: Admission): Promise<FastifyReply> {
    const { tenant } = reply.request.principal
    const { rpc, turns, read } = subscription
    const _meta = { 'io.modelcontextprotocol/subscriptionId': rpc.id ?? null }
    return respondWithEvents(reply, { admission, metrics, writers, headers: dialectHeaders }, response => {
      const leaving = new AbortController()
      const { signal } = leaving
      const leave = () => leaving.abort(new Error('The subscription is over'))
      void run()
      return { leave, sendToken: () => false, drained: () => {}, gone: leave }

      async function run(): Promise<void> {
        const taskIds = turns.map(({ id }) => id)
        try {
          await notify('notifications/subscriptions/acknowledged', { notifications: taskIds.length > 0 ? { taskIds } : {} })
          await Promise.all(turns.map(follow))
          await write(resultOf(rpc, { resultType: 'complete', _meta }))
          response.end()
        } catch (error) {
          if (!signal.aborted) reply.log.warn({ err: error }, 'a subscription was cut')
          response.destroy()
        }
      }

      async function follow({ id, task, number }: TurnRow): Promise<void> {
        let sentNotice: string | null = null
        let idle = 0
        for (;;) {
          const feed = await untilAborted(hub.open(tenant, task), signal)
          // Read after the feed is open: what changes after this read is announced to the feed.
          const found = await read(id)
          if (!found) return
          const turn = toTurn(found.turn)
          const now = noticeOf(turn)
          idle = now === sentNotice ? idle + 1 : 0
          if (now !== sentNotice) await notify('notifications/tasks', found.task)
          if (hasEnded(turn.status)) return
          sentNotice = now
          const outcome = await hub.untilEnded(feed, number, signal, questionsIn(turn.waits))
          if (outcome === 'left' || outcome === 'deleted') return
          // The feed may be behind the rows.
          if (idle > 0) await delay(backoffMs(idle, { firstMs: 20, maxMs: 1_000, jitter: [1, 1] }))
        }
      }

      function notify(method: string, params: object): Promise<void> {
        return write({ jsonrpc: '2.0', method, params: { _meta, ...params } })
      }

      async function write(message: object): Promise<void> {
        await untilAborted(response.room(), signal)
        response.send(`data: ${JSON.stringify(message)}\n\n`)
      }
    })
  }
}
