/**
 * The events of several tasks over any number of connections, one at a time, each event once.
 *
 * Each task has its own place, and every connection resumes all of them. If an event of one task is missing, that task alone joins again with a
 * snapshot. A task that has ended is left out of the next connection; the stream ends with the last one, unless it follows.
 */
import { type Cursor, origin, RivuletError } from '@rivulet/protocol'
import { pause, retryDelayMs } from '../http/backoff.ts'
import { linkAbort } from '../http/link-abort.ts'
import { maxAskedMs, mayPass, rejectionOf } from '../http/rejection.ts'
import type { ConnectionStatus } from './connection-status.ts'
import { openStream } from './open-stream.ts'
import { readFrames } from './sse-frames.ts'
import { hear, nowhere, type Place, withoutEnded } from './stream-place.ts'
import type { TaskEvent } from './task-event.ts'
import type { StreamDeps } from './task-stream.ts'

/** A task that was deleted is an event here, because the others go on. */
export type ManyEvent = TaskEvent | { type: 'deleted'; task: string; cursor: Cursor }

export type ManyHeard = { id: string; event: ManyEvent; place: Place }

export type ManyRequest = {
  /** Where each task stands. Without a cursor: from the first event, or with a snapshot. */
  places: ReadonlyMap<string, Place>
  from: 'start' | 'snapshot'
  follow: boolean
  /** Also the children of these tasks. */
  children?: boolean
  /** Forget the messages of turns that have ended. */
  isForgetful?: boolean
  signal: AbortSignal
  onStatus?: (status: ConnectionStatus) => void
  onRepair?: (id: string) => void
}

/** An event of this task was lost. */
class Lost extends Error {
  readonly id: string

  constructor(id: string, cause: unknown) {
    super('An event was lost', { cause })
    this.id = id
  }
}

export async function* streamMany(deps: StreamDeps, request: ManyRequest): AsyncGenerator<ManyHeard, void, void> {
  const { wakeUps, random, silenceMs } = deps
  const { from, follow, children = false, isForgetful = false, signal, onStatus = () => {}, onRepair = () => {} } = request
  const places = new Map(request.places)
  const caughtUp = new Set<string>()
  /** Tasks that lost an event: they join again with a snapshot. */
  const repairing = new Set<string>()
  let failures = 0
  let repairs = 0

  while (places.size > 0) {
    if (signal.aborted) throw signal.reason
    const { controller, unlink } = linkAbort(signal)
    let askedMs = 0
    let isLost = false
    onStatus('connecting')
    try {
      const response = await openStream(deps, '/v1/events', controller, { tasks: cursors(), follow, ...(children && { children }) })
      onStatus('live')
      const onRetry = (ms: number) => {
        askedMs = Math.min(ms, maxAskedMs)
      }
      const options = { signal: controller.signal, silenceMs, wakeUps, onRetry }
      for await (const { id: name = '', data } of response.body ? readFrames(response.body, options) : []) {
        const [id = '', cursor] = name.split('/')
        const heard = take(id, { id: cursor, data })
        if (!heard) continue
        failures = 0
        yield heard
        if (places.size === 0) return
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      isLost = error instanceof Lost
      if (error instanceof Lost) {
        repairing.add(error.id)
        repairs += 1
        onRepair(error.id)
      } else {
        yield* removed(error)
        askedMs = Math.max(askedMs, rejectionOf(error)?.retryAfterMs ?? 0)
      }
    } finally {
      unlink()
      controller.abort()
    }
    if (places.size === 0) return
    onStatus('waiting')
    await pause(Math.max(askedMs, retryDelayMs(isLost ? Math.max(failures, repairs) : failures, random)), { signal, wakeUps })
    failures += 1
  }

  function cursors(): Record<string, Cursor | null> {
    const first = from === 'start' ? origin : null
    return Object.fromEntries(Array.from(places, ([id, { cursor }]) => [id, repairing.has(id) ? null : (cursor ?? first)]))
  }

  function take(id: string, frame: { id: string | undefined; data: string }): ManyHeard | null {
    const before = places.get(id) ?? (children && id !== '' ? nowhere : undefined)
    if (!before) return null
    const { place, event } = hearOrLose(id, before, frame)
    if (event?.type === 'snapshot') repairing.delete(id)
    const isOver = event?.type === 'turn.finished' || event?.type === 'snapshot'
    const next = isForgetful && isOver ? withoutEnded(place) : place
    places.set(id, next)
    if (event?.type === 'end' || event?.type === 'deleted') places.delete(id)
    if (event === null || (event.type === 'caught_up' && caughtUp.has(id))) return null
    if (event.type === 'caught_up') caughtUp.add(id)
    return { id, event, place: next }
  }

  function hearOrLose(
    id: string,
    place: Place,
    frame: { id: string | undefined; data: string },
  ): { place: Place; event: ManyEvent | null } {
    try {
      return hear(place, frame)
    } catch (error) {
      if (!(error instanceof RivuletError)) throw error
      if (error.code === 'task_not_found') return { place, event: deletedAt(id, place) }
      throw new Lost(id, error)
    }
  }

  /** Tasks that were deleted while there was no connection. Any other error that does not pass is thrown, also for a task that was never heard of. */
  function* removed(error: unknown): Generator<ManyHeard> {
    const named = error instanceof RivuletError && error.code === 'task_not_found' ? (error.details ?? []) : []
    const ids = named.map(({ path }) => path.replace(/^\/tasks\//, ''))
    const known = ids.flatMap(id => ((places.get(id)?.cursor ?? null) === null ? [] : [id]))
    if (ids.length > known.length || (ids.length === 0 && !mayPass(error))) throw error
    for (const id of known) {
      const place = places.get(id) ?? nowhere
      places.delete(id)
      yield { id, event: deletedAt(id, place), place }
    }
  }
}

function deletedAt(id: string, { cursor }: Place): ManyEvent {
  return { type: 'deleted', task: id, cursor: cursor ?? origin }
}
