/**
 * The frames of a stream over any number of connections: each resumes at the id of the last frame. The consumer decides when it has the end. An error that
 * is the fault of the request is thrown.
 */
import type { EventSourceMessage } from 'eventsource-parser'
import { pause, retryDelayMs } from '../http/backoff.ts'
import { linkAbort } from '../http/link-abort.ts'
import { maxAskedMs, mayPass, rejectionOf } from '../http/rejection.ts'
import { openStream } from './open-stream.ts'
import { readFrames } from './sse-frames.ts'
import type { StreamDeps } from './task-stream.ts'

export type ResumedStream = {
  pathAfter(id: string | undefined): string
  after?: string | undefined
  /** `live`: connected. `waiting`: cut off, and reconnecting. */
  onStatus?: ((status: 'live' | 'waiting') => void) | undefined
  signal: AbortSignal
}

export async function* resumedFrames(
  deps: StreamDeps,
  { pathAfter, after, onStatus, signal }: ResumedStream,
): AsyncGenerator<EventSourceMessage, void, void> {
  const { wakeUps, random, silenceMs } = deps
  let place = after
  let failures = 0

  for (;;) {
    if (signal.aborted) throw signal.reason
    const { controller, unlink } = linkAbort(signal)
    let askedMs = 0
    try {
      const response = await openStream(deps, pathAfter(place), controller)
      if (response.status === 204) return
      onStatus?.('live')
      const onRetry = (ms: number) => {
        askedMs = Math.min(ms, maxAskedMs)
      }
      const options = { signal: controller.signal, silenceMs, wakeUps, onRetry }
      for await (const frame of response.body ? readFrames(response.body, options) : []) {
        failures = 0
        place = frame.id ?? place
        yield frame
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!mayPass(error)) throw error
      askedMs = Math.max(askedMs, rejectionOf(error)?.retryAfterMs ?? 0)
    } finally {
      unlink()
      controller.abort()
    }
    onStatus?.('waiting')
    await pause(Math.max(askedMs, retryDelayMs(failures, random)), { signal, wakeUps })
    failures += 1
  }
}
