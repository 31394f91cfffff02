/**
 * The events of a task over any number of connections, each event once.
 *
 * After a broken connection it reconnects with the last cursor, after a delay that grows until data arrives; the delay ends at once when the
 * browser is online or visible again. An error that is the request's own fault is final. If an event is missing, it reconnects with a snapshot.
 * The stream ends with the task, unless it follows, and closes its connection however the reader stops.
 */
import { origin, RivuletError } from '@rivulet/protocol'
import { pause, retryDelayMs, type WakeUps } from '../http/backoff.ts'
import type { Http } from '../http/http.ts'
import { linkAbort } from '../http/link-abort.ts'
import { maxAskedMs, mayPass, rejectionOf } from '../http/rejection.ts'
import type { ConnectionStatus } from './connection-status.ts'
import { openStream } from './open-stream.ts'
import { readFrames } from './sse-frames.ts'
import { hear, type Place, withoutEnded } from './stream-place.ts'
import { parseTokenEvent, type TaskEvent } from './task-event.ts'

export type StreamDeps = { http: Http; wakeUps: WakeUps; random: () => number; silenceMs: number }

export type StreamRequest = {
  id: string
  place: Place
  /** Where a reader without a cursor begins. */
  from: 'start' | 'snapshot'
  /** Stay when the task has ended. */
  follow: boolean
  /** Forget the messages of turns that have ended: for a reader that hands on what happens and looks at nothing. Default false. */
  isForgetful?: boolean
  signal: AbortSignal
  /** A turn that this handle has sent: the stream is not over before the turn appears in it. */
  expectedTurn: () => number
  onStatus?: (status: ConnectionStatus) => void
  /** Something was missing, and a snapshot is going to replace it. */
  onRepair: () => void
}

export type Heard = { event: TaskEvent; place: Place }

export async function* streamTask(deps: StreamDeps, request: StreamRequest): AsyncGenerator<Heard, void, void> {
  const { http, wakeUps, random, silenceMs } = deps
  const { id, follow, isForgetful = false, signal, expectedTurn, onStatus = () => {}, onRepair } = request
  let { place, from } = request
  let failures = 0
  let repairs = 0
  let isCaughtUp = false

  for (;;) {
    if (signal.aborted) throw signal.reason
    const { controller, unlink } = linkAbort(signal)
    let retryMs = 0
    let pauseMs: number
    onStatus('connecting')
    try {
      const response = await openStream(deps, `/v1/tasks/${encodeURIComponent(id)}/events${query()}`, controller)
      if (response.status === 204 && !isExpecting()) {
        // A reader that comes back with the last cursor does not receive the end again.
        if (place.state.turns.length > 0) {
          yield { event: { type: 'end', task: id, status: place.state.status, cursor: place.cursor ?? origin }, place }
        }
        return
      }
      if (response.body && response.status === 200) {
        onStatus('live')
        const onRetry = (ms: number) => {
          retryMs = Math.min(ms, maxAskedMs)
        }
        for await (const frame of readFrames(response.body, { signal: controller.signal, silenceMs, wakeUps, onRetry })) {
          if (frame.event === 'token') {
            const fresh = parseTokenEvent(frame.data)
            if (fresh?.task === id) http.freshToken(fresh.token)
            continue
          }
          const heard = hear(place, frame)
          const { event } = heard
          const isOver = event?.type === 'turn.finished' || event?.type === 'snapshot'
          place = isForgetful && isOver ? withoutEnded(heard.place) : heard.place
          if (event === null || (event.type === 'caught_up' && isCaughtUp)) continue
          if (event.type === 'caught_up') isCaughtUp = true
          else failures = 0
          if (event.type === 'end' && isExpecting()) break
          yield { event, place }
          if (event.type === 'end') return
        }
      }
      // The server ended the response properly, so the client reconnects after its `retry:`.
      pauseMs = Math.max(retryMs, retryDelayMs(failures, random))
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!mayPass(error)) throw error
      const isLost = error instanceof RivuletError && error.code === 'offset_mismatch'
      if (isLost) {
        onRepair()
        place = { ...place, cursor: null }
        from = 'snapshot'
        repairs += 1
      }
      // A server that loses things may go on to do so, whatever else is heard of it.
      pauseMs = Math.max(rejectionOf(error)?.retryAfterMs ?? 0, retryDelayMs(isLost ? Math.max(failures, repairs) : failures, random))
    } finally {
      unlink()
      controller.abort()
    }
    failures += 1
    onStatus('waiting')
    await pause(pauseMs, { signal, wakeUps })
  }

  function query(): string {
    const where = place.cursor !== null ? `after=${place.cursor}` : from === 'start' ? 'from=start' : null
    const said = [...(where ? [where] : []), ...(follow ? ['follow=true'] : [])]
    return said.length > 0 ? `?${said.join('&')}` : ''
  }

  function isExpecting(): boolean {
    return place.isWhole && expectedTurn() > (place.state.turns.at(-1)?.number ?? 0)
  }
}
