/**
 * The events of a task over any number of connections, each event once.
 *
 * After a broken connection it resumes at the last cursor; if an event is missing, with a snapshot. The stream ends with the task, unless it follows.
 */
import { origin } from '@rivulet/protocol'
import { pathOf } from '../http/path-of.ts'
import { unreachable } from '../http/rejection.ts'
import type { ConnectionStatus } from './connection-status.ts'
import { reconnecting, type StreamDeps } from './reconnecting.ts'
import { createTaskReader, type Heard, type ReaderOptions } from './task-reader.ts'

export type StreamRequest = ReaderOptions & {
  id: string
  /** Stay when the task has ended. */
  follow: boolean
  signal: AbortSignal
  /** A turn that this handle has sent: the stream is not over before the turn appears in it. */
  expectedTurn: () => number
  onStatus?: (status: ConnectionStatus) => void
}

export function streamTask(deps: StreamDeps, request: StreamRequest): AsyncGenerator<Heard, void, void> {
  const { id, follow, signal, expectedTurn, onStatus } = request
  const reader = createTaskReader(request)
  let isOver = false

  return reconnecting<Heard>(deps, {
    ...{ signal, task: id, onStatus, isOver: () => isOver },
    request: () => {
      const at = reader.next()
      const where = at === 'start' ? { from: at } : at === 'snapshot' ? {} : { after: at }
      return { path: `${pathOf('tasks', id)}/events`, query: { ...where, follow: follow || undefined } }
    },
    take: frame => {
      const heard = reader.read(frame)
      if (heard?.event.type !== 'end') return heard
      if (isExpecting()) throw unreachable('The stream ended too early')
      isOver = true
      return heard
    },
    nothingLeft: () => {
      isOver = !isExpecting()
      const { place } = reader
      // A reader that comes back with the last cursor already had the end.
      if (!isOver || place.state.turns.length === 0) return []
      return [{ event: { type: 'end', task: id, status: place.state.status, cursor: place.cursor ?? origin }, place }]
    },
  })

  function isExpecting(): boolean {
    const { isWhole, state } = reader.place
    return isWhole && expectedTurn() > (state.turns.at(-1)?.number ?? 0)
  }
}
