/**
 * Appends to the logs of turns for workers that must not reach Redis. The worker must hold each turn; the script in Redis is the one that workers with
 * Redis call, so it fences and recognises a batch that is sent again in the same way. An entry is written only if it is an event of its task that a
 * worker may say.
 */
import { type EncodedEvent, encodeEvent } from '@rivulet/broker'
import * as contract from '@rivulet/contract/internal'
import { RivuletError, type TaskId } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { decodeEvent } from '../../../log/log-fold.ts'
import { indexOfDelta } from '../../../log/plain-delta.ts'
import { workerEvents } from '../../../turns/composing/turn-composition.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { HeldTurns } from './held-turns.ts'

export function appendRoutes(
  scope: FastifyInstance,
  { writer, config: { limits } }: Services,
  { heldTasks, requireHolder }: HeldTurns,
): void {
  // Its entries are JSON within JSON: every quote in them takes a second byte.
  const bodyLimit = 2 * limits.turnBytes + limits.bodyBytes
  const onRequest = requireHolder(limits.bodyBytes)
  serve(
    scope,
    contract.appendEvents,
    async request => {
      const { appends } = request.body
      const tasks = await heldTasks(request, appends)
      const held = appends.flatMap(({ epoch, first, entries }, i) => {
        const task = tasks[i]
        return task ? [{ task, epoch, first, entries: entriesOf(task, entries) }] : []
      })
      const written = held.length > 0 ? await writer.append(held).catch(throwIfFull) : []
      return { results: tasks.map(task => (task === null ? 'fenced' : (written.shift() ?? 'gap'))) }
    },
    { bodyLimit, onRequest },
  )
}

function entriesOf(task: TaskId, lines: string): EncodedEvent[] {
  return (lines === '' ? [] : lines.split('\n')).map(json => {
    const index = indexOfDelta(task, json)
    if (index !== null) return { index, json }
    const event = decodeEvent(task, json)
    if (!event || !workerEvents.has(event.type)) throw notOfWorker()
    return encodeEvent(event)
  })
}

function notOfWorker(): RivuletError {
  const reason = 'Must be events of the turn, one in each line, that a worker may append'
  return new RivuletError('validation_failed', 'Request validation failed', { details: [{ path: '/appends/entries', reason }] })
}

/** The worker waits for such a Redis for a while, and then fails the attempt. */
export function throwIfFull(error: unknown): never {
  const isFull = error instanceof Error && error.message.includes('OOM')
  throw isFull ? new RivuletError('overloaded', 'Redis is out of memory', { cause: error }) : error
}
