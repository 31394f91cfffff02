/**
 * A stream over any number of connections, read at the pace of its reader.
 *
 * After each connection it reconnects, after a delay that grows until an item arrives; the delay ends at once when the browser is online or visible again.
 * An error that is the request's own fault is final. It closes its connection however the reader stops.
 */
import { RivuletError } from '@rivulet/protocol'
import { pause, retryDelayMs, type WakeUps } from '../http/backoff.ts'
import { type Http, type Query, queryText } from '../http/http.ts'
import { linkAbort } from '../http/link-abort.ts'
import { maxAskedMs, mayPass, rejectionOf, unreachable } from '../http/rejection.ts'
import type { ConnectionStatus } from './connection-status.ts'
import { readFrames } from './sse-frames.ts'
import type { Frame } from './sse-parser.ts'
import { parseTokenEvent } from './task-event.ts'

export type StreamDeps = { http: Http; wakeUps: WakeUps; random: () => number; silenceMs: number }

type ReconnectingStream<T> = {
  signal: AbortSignal
  /** The task that the stream is about: fresh tokens for it are used from then on. */
  task?: string
  onStatus?: ((status: ConnectionStatus) => void) | undefined
  /** What the next connection asks for. With a body, by POST. */
  request(): { path: string; query?: Query; body?: unknown }
  /** What a frame tells; null where that is nothing new. Throws `offset_mismatch` when something was lost before it. */
  take(frame: Frame): T | null
  /** The server has nothing left to send (204). Unless the stream is over then, it asks again. */
  nothingLeft?(): Iterable<T>
  /** An error that does not pass. Throws it unless the stream can continue. */
  recover?(error: unknown): Iterable<T>
  isOver(): boolean
}

export async function* reconnecting<T>(deps: StreamDeps, stream: ReconnectingStream<T>): AsyncGenerator<T, void, void> {
  const { http, wakeUps, random, silenceMs } = deps
  const { signal, task, onStatus = () => {}, isOver } = stream
  let failures = 0
  let losses = 0

  while (!isOver()) {
    if (signal.aborted) throw signal.reason
    const { controller, unlink } = linkAbort(signal)
    let delayMs = 0
    onStatus('connecting')
    try {
      const response = await open(controller)
      if (response.status === 204) yield* stream.nothingLeft?.() ?? []
      if (response.body) {
        onStatus('live')
        const onRetry = (ms: number) => {
          delayMs = Math.min(ms, maxAskedMs)
        }
        for await (const frame of readFrames(response.body, { signal: controller.signal, silenceMs, wakeUps, onRetry })) {
          if (frame.event === 'token') renewToken(frame.data)
          const item = frame.event === 'token' ? null : stream.take(frame)
          if (item === null) continue
          failures = 0
          yield item
          if (isOver()) return
        }
      }
      // The server ended the response properly, so the client reconnects after its `retry:`.
      delayMs = Math.max(delayMs, retryDelayMs(failures, random))
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!mayPass(error)) yield* recover(error)
      const isLost = error instanceof RivuletError && error.code === 'offset_mismatch'
      if (isLost) losses += 1
      // A server that loses events may lose the next ones, too, so the delay grows although events arrive.
      delayMs = Math.max(rejectionOf(error)?.retryAfterMs ?? 0, retryDelayMs(isLost ? Math.max(failures, losses) : failures, random))
    } finally {
      unlink()
      controller.abort()
    }
    if (isOver()) return
    failures += 1
    onStatus('waiting')
    await pause(delayMs, { signal, wakeUps })
  }

  /** The head of the response has to arrive as soon as any other byte. */
  async function open(controller: AbortController): Promise<Response> {
    const { path, query = {}, body } = stream.request()
    const timer = setTimeout(() => controller.abort(unreachable(`No answer within ${silenceMs} ms`)), silenceMs)
    try {
      return await http.open(path + queryText(query), controller.signal, body)
    } finally {
      clearTimeout(timer)
    }
  }

  function renewToken(data: string): void {
    const fresh = parseTokenEvent(data)
    if (fresh && fresh.task === task) http.freshToken(fresh.token)
  }

  function recover(error: unknown): Iterable<T> {
    if (!stream.recover) throw error
    return stream.recover(error)
  }
}
