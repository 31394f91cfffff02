/**
 * A task's stream in another format, over any number of connections: each resumes at the id of the last chunk.
 *
 * Chunks pass as they are, because their meaning belongs to the format. A refusal that is the fault of the request is thrown.
 */
import type { Json, StreamFormat } from '@rivulet/protocol'
import { answeredOf, maxAskedMs, mayPass } from '../http/answer.ts'
import { pause, retryDelayMs } from '../http/backoff.ts'
import { linkAbort } from '../http/link-abort.ts'
import { openStream } from './open-stream.ts'
import { readFrames } from './sse-frames.ts'
import { parseTokenEvent } from './task-event.ts'
import type { StreamDeps } from './task-stream.ts'

export type FormatChunk = {
  /** Where a later call can resume, as `after`; null for a chunk that has none. */
  id: string | null
  /** The name of the SSE event, such as `turn` and `end`; null for a chunk of the format itself. */
  event: string | null
  data: Json
}

export type FormatRequest = {
  id: string
  format: StreamFormat
  /** The id of the last chunk that the caller has. Default: the task, or the turn, as far as it has come, and then what follows. */
  after?: string | undefined
  turn?: number | undefined
  follow?: boolean | undefined
  signal: AbortSignal
}

export async function* streamFormat(deps: StreamDeps, request: FormatRequest): AsyncGenerator<FormatChunk, void, void> {
  const { http, wakeUps, random, silenceMs } = deps
  const { id, signal } = request
  let { after } = request
  let failures = 0

  for (;;) {
    if (signal.aborted) throw signal.reason
    const { controller, unlink } = linkAbort(signal)
    let askedMs = 0
    try {
      const response = await openStream(deps, pathOf(request, after), controller)
      if (response.status === 204) return
      const onRetry = (ms: number) => {
        askedMs = Math.min(ms, maxAskedMs)
      }
      const options = { signal: controller.signal, silenceMs, wakeUps, onRetry }
      for await (const { id: place = null, event = null, data } of response.body ? readFrames(response.body, options) : []) {
        if (event === 'token') {
          const fresh = parseTokenEvent(data)
          if (fresh?.task === id) http.freshToken(fresh.token)
          continue
        }
        if (data === '[DONE]') return
        failures = 0
        after = place ?? after
        yield { id: place, event, data: JSON.parse(data) }
        if (event === 'end') return
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!mayPass(error)) throw error
      askedMs = Math.max(askedMs, answeredOf(error)?.retryAfterMs ?? 0)
    } finally {
      unlink()
      controller.abort()
    }
    await pause(Math.max(askedMs, retryDelayMs(failures, random)), { signal, wakeUps })
    failures += 1
  }
}

function pathOf({ id, format, turn: turnNumber, follow }: FormatRequest, after: string | undefined): string {
  const query = new URLSearchParams({
    format,
    ...(after !== undefined && { after }),
    ...(turnNumber !== undefined && { turn: String(turnNumber) }),
    ...(follow && { follow: 'true' }),
  })
  return `/v1/tasks/${encodeURIComponent(id)}/events?${query}`
}
