/**
 * The frames of one response, at the pace of their reader: the next chunk of the body is read only after the last one was taken, so one chunk is
 * in memory. A body without a byte for too long, not even a heartbeat, is aborted.
 */
import { RivuletError } from '@rivulet/protocol'
import type { WakeUps } from '../http/backoff.ts'
import { unreachable } from '../http/rejection.ts'
import { createFrameParser, type Frame } from './sse-parser.ts'

export type FrameOptions = {
  signal: AbortSignal
  /** Silence after which the connection is taken for dead. */
  silenceMs: number
  wakeUps: WakeUps
  onRetry: (ms: number) => void
}

/** A snapshot holds at most a turn's whole output and as much of the past again; in JSON that can be some times as long. */
const maxFrameLength = 128 * 1024 * 1024

export async function* readFrames(body: ReadableStream<Uint8Array>, options: FrameOptions): AsyncGenerator<Frame, void, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const silence = createSilenceGuard(options)
  const parser = createFrameParser(options.onRetry)
  try {
    for (;;) {
      const { done, value } = await silence.guard(reader.read())
      if (done) return
      yield* parser.parse(decoder.decode(value, { stream: true }))
      if (parser.length > maxFrameLength) throw new RivuletError('output_too_large', `An event of more than ${maxFrameLength} characters`)
    }
  } finally {
    silence.close()
    // Not awaited, because a stuck connection would block the reader that stops.
    reader.cancel().catch(() => {})
  }
}

function createSilenceGuard({ signal, silenceMs, wakeUps }: FrameOptions) {
  let giveUp: ((reason: unknown) => void) | null = null
  let since = 0
  // A page that wakes up does not wait for a connection that has missed more than one heartbeat.
  const stop = wakeUps(() => {
    if (performance.now() - since > silenceMs / 2) giveUp?.(silent())
  })
  signal.addEventListener('abort', abort)
  return { guard, close }

  function guard<T>(read: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined
    since = performance.now()
    return new Promise<T>((resolve, reject) => {
      giveUp = reject
      timer = setTimeout(() => reject(silent()), silenceMs)
      if (signal.aborted) abort()
      read.then(resolve, error => reject(unreachable('The connection broke', error)))
    }).finally(() => {
      clearTimeout(timer)
      giveUp = null
    })
  }

  function silent(): RivuletError {
    return unreachable(`No byte for ${silenceMs} ms`)
  }

  function abort(): void {
    giveUp?.(signal.reason)
  }

  function close(): void {
    stop()
    signal.removeEventListener('abort', abort)
  }
}
