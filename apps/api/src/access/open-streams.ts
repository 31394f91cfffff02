/**
 * The streams that this process has open, by the key behind them: how many there may be, how long they may go on, and the fresh token that
 * each holder of one is given before the old one ends.
 *
 * A stream was allowed when it was opened. Whether it still is, is asked of Postgres every few seconds for all keys at once; streams of a key
 * that was revoked or has expired are ended. With Postgres away they go on: nobody could have revoked anything.
 */
import { RivuletError, type TokenEvent } from '@rivulet/protocol'
import type { KeyCheck } from './key-check.ts'
import { isLimited, type Principal } from './principal.ts'
import type { TaskTokens } from './task-token.ts'

/** With the time that a key is believed, this stays below the 30 s that a revocation may take. */
const sweepSeconds = 10

/** What can be done to an open stream. */
export type StreamEnd = {
  leave(): void
  /** Something for this viewer alone. False when it cannot be said now. */
  tell(event: TokenEvent): boolean
}

export type Admission = {
  opened(end: StreamEnd): void
  /** Has to be called once, however the stream ended, also when it never began. */
  over(): void
}

export type OpenStreams = { admit(principal: Principal): Admission; close(): void }

export type OpenStreamsDeps = {
  keys: KeyCheck
  tokens: TaskTokens
  limits: { perKey: number; perProcess: number }
  onCut: (key: string, count: number) => void
  onError: (error: unknown) => void
}

type Stream = { principal: Principal; end: StreamEnd | null; renewAt: number; ttlSeconds: number }

export function createOpenStreams({ keys, tokens, limits, onCut, onError }: OpenStreamsDeps): OpenStreams {
  const byKey = new Map<string | null, Set<Stream>>()
  let count = 0
  let second = 0
  const clock = setInterval(tick, 1_000)
  clock.unref()
  return { admit, close: () => clearInterval(clock) }

  function admit(principal: Principal): Admission {
    const { key } = principal
    if (count >= limits.perProcess) {
      throw new RivuletError('overloaded', `MAX_STREAMS: this process has ${limits.perProcess} open streams, and takes no more`)
    }
    const streams = byKey.get(key) ?? new Set()
    if (isLimited(principal) && streams.size >= limits.perKey) {
      throw new RivuletError('too_many_streams', `MAX_STREAMS_PER_KEY: a key may have ${limits.perKey} open streams in a process`)
    }
    const stream: Stream = { principal, end: null, ...renewal(principal) }
    streams.add(stream)
    byKey.set(key, streams)
    count += 1
    return {
      opened(end) {
        stream.end = end
      },
      over() {
        if (!streams.delete(stream)) return
        count -= 1
        if (streams.size === 0) byKey.delete(key)
      },
    }
  }

  function tick(): void {
    second = (second + 1) % sweepSeconds
    if (second === 0) sweep().catch(onError)
    for (const streams of byKey.values()) for (const stream of streams) if (stream.renewAt <= Date.now()) renew(stream)
  }

  async function sweep(): Promise<void> {
    const open = [...byKey.keys()].filter(key => key !== null)
    if (open.length === 0) return
    const live = await keys.stillLive(open)
    for (const key of open.filter(id => !live.has(id))) {
      const streams = [...(byKey.get(key) ?? [])]
      for (const { end } of streams) end?.leave()
      onCut(key, streams.length)
    }
  }

  function renew(stream: Stream): void {
    const { principal, end, ttlSeconds } = stream
    if (!principal.token || !end) return
    const { task, can } = principal.token
    const { tenant, key, expiresAt: until } = principal
    const signed = tokens.sign({ tenant, task, can, key, ttlSeconds, until })
    if (!end.tell({ type: 'token', task, ...signed })) return
    const fresh = { task, can, issuedAt: new Date(), expiresAt: new Date(signed.expiresAt) }
    Object.assign(stream, renewal({ ...principal, token: fresh }))
  }
}

/** At two thirds of a token's life. */
function renewal({ token }: Principal): { renewAt: number; ttlSeconds: number } {
  if (!token) return { renewAt: Number.POSITIVE_INFINITY, ttlSeconds: 0 }
  const ttlMs = token.expiresAt.getTime() - token.issuedAt.getTime()
  return { renewAt: token.issuedAt.getTime() + (ttlMs * 2) / 3, ttlSeconds: Math.ceil(ttlMs / 1_000) }
}
