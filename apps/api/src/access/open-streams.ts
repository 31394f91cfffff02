/**
 * The open streams of this process: their limits, their maximum duration, and the next token that each holder of a token receives before the current one
 * expires. The limits of a token, a task, a key and a tenant include the streams of other processes.
 *
 * Every few seconds the open streams are checked. Those of revoked or expired keys, of revoked tokens, and of tasks that a key limited to agents may not read
 * any more are closed. While Postgres is unavailable they stay open, because nothing can be revoked then. A stream with a token ends with its session.
 */
import { RivuletError, type TaskId, type TokenEvent } from '@rivulet/protocol'
import type { Readable } from '../store/connection/tenant.ts'
import type { KeyCheck } from './key-check.ts'
import { isLimited, type Principal } from './principal.ts'
import { createTally } from './tally.ts'
import type { TaskTokens } from './task-token.ts'
import type { TokenClaims } from './token-claims.ts'
import type { TokenRevocations } from './token-revocations.ts'

/** With the time that a key is believed, this stays below the 30 s that a revocation may take. */
const sweepSeconds = 10

/** What can be done to an open stream. */
export type StreamEnd = {
  leave(): void
  /** Something for this viewer alone. False when it cannot be said now. */
  sendToken(event: TokenEvent): boolean
}

export type Admission = {
  /** A task that it is about, if that was not known yet when it was admitted. */
  watches(task: TaskId): void
  opened(end: StreamEnd): void
  /** Has to be called once, however the stream ended, also when it never began. */
  over(): void
}

/** The place of a response whose work fails is free again. */
export async function orGiveBack<T>(admission: Admission | null, work: Promise<T>): Promise<T> {
  return work.catch(error => {
    admission?.over()
    throw error
  })
}

export type OpenStreams = {
  /** @param tasks none where the task is still to be created: then it counts from `watches` on. */
  admit(principal: Principal, tasks: readonly TaskId[]): Admission
  /** Counts that are at least this part of their limit, 0 to 1. */
  held(part: number): Record<string, number>
  close(): void
}

/** How many streams are open at most, by what they have in common. */
type StreamLimits = { perToken: number; perTask: number; perKey: number; perTenant: number; perProcess: number }

type OpenStreamsDeps = {
  keys: KeyCheck
  tokens: TaskTokens
  revocations: TokenRevocations
  /** Those of these tasks that a reader may read. */
  tasksWithin(reader: Readable, tasks: readonly TaskId[]): Promise<ReadonlySet<TaskId>>
  limits: StreamLimits
  /** Open streams of other processes, by what they have in common. */
  elsewhere?: (name: string) => number
  /** A limit rejected a stream: the setting's name. */
  onLimit: (setting: string) => void
  onCut: (whose: { key: string } | { task: TaskId }, streams: number) => void
  onError: (error: unknown) => void
}

type Stream = { principal: Principal; tasks: Set<TaskId>; end: StreamEnd | null; token: TokenClaims | null }

export function createOpenStreams({
  keys,
  tokens,
  revocations,
  tasksWithin,
  limits,
  elsewhere = () => 0,
  onLimit,
  onCut,
  onError,
}: OpenStreamsDeps): OpenStreams {
  const streams = new Set<Stream>()
  const counts = createTally()
  let second = 0
  const clock = setInterval(tick, 1_000)
  clock.unref()
  return { admit, held, close: () => clearInterval(clock) }

  function admit(principal: Principal, tasks: readonly TaskId[]): Admission {
    if (streams.size >= limits.perProcess) {
      onLimit('MAX_STREAMS')
      throw new RivuletError('overloaded', `This process has ${limits.perProcess} open streams, the maximum (MAX_STREAMS)`)
    }
    if (isLimited(principal)) requireRoom(principal, tasks)
    const stream: Stream = { principal, tasks: new Set(tasks), end: null, token: principal.token ?? null }
    streams.add(stream)
    for (const name of namesOf(stream)) counts.add(name)
    return {
      watches(created) {
        if (stream.tasks.has(created)) return
        stream.tasks.add(created)
        counts.add(taskName(created))
      },
      opened(end) {
        stream.end = end
      },
      over() {
        if (streams.delete(stream)) for (const name of namesOf(stream)) counts.remove(name)
      },
    }
  }

  function requireRoom({ tenant, key, token }: Principal, tasks: readonly TaskId[]): void {
    rejectBeyond(token && tokenName(token), limits.perToken, 'A token', 'MAX_STREAMS_PER_TOKEN')
    for (const task of tasks) rejectBeyond(taskName(task), limits.perTask, 'A task', 'MAX_STREAMS_PER_TASK')
    rejectBeyond(keyName(key), limits.perKey, 'A key', 'MAX_STREAMS_PER_KEY')
    rejectBeyond(tenantName(tenant), limits.perTenant, 'A tenant', 'MAX_STREAMS_PER_TENANT')
  }

  function rejectBeyond(name: string | null | undefined, limit: number, what: string, setting: string): void {
    if (!name || counts.countOf(name) + elsewhere(name) < limit) return
    onLimit(setting)
    throw new RivuletError('too_many_streams', `${what} may have at most ${limit} open streams (${setting})`)
  }

  function held(part: number): Record<string, number> {
    const found: Record<string, number> = {}
    for (const [name, count] of counts.entries()) if (count >= limitOf(name) * part) found[name] = count
    return found
  }

  function limitOf(name: string): number {
    if (name.startsWith(tenantName(''))) return limits.perTenant
    if (name.startsWith(keyName(''))) return limits.perKey
    return name.startsWith(taskName('')) ? limits.perTask : limits.perToken
  }

  function tick(): void {
    second = (second + 1) % sweepSeconds
    if (second === 0) sweep().catch(onError)
    const now = Date.now()
    for (const stream of streams) {
      if (!stream.token || !stream.end) continue
      if (stream.token.endsAt * 1_000 <= now) stream.end.leave()
      else if (renewAt(stream.token) <= now) renew(stream, stream.token, stream.end)
    }
  }

  async function sweep(): Promise<void> {
    const open = [...streams]
    const held = [...new Set(open.flatMap(({ principal: { key } }) => key ?? []))]
    const claims = open.flatMap(({ principal: { token } }) => token ?? [])
    if (held.length === 0) return
    const [live, revoked] = await Promise.all([keys.stillLive(held), revocations.revokedAmong(claims)])
    for (const key of held.filter(id => !live.has(id))) {
      cut(
        { key },
        open.filter(({ principal }) => principal.key === key),
      )
    }
    for (const task of new Set(Array.from(revoked, token => token.task))) {
      cut(
        { task },
        open.filter(({ principal: { token } }) => token?.task === task && revoked.has(token)),
      )
    }
    await Promise.all(limitedByKey(open).map(cutMoved))
  }

  /** The first response of a conversation may be that of another agent. @param limited streams of one key */
  async function cutMoved(limited: readonly Stream[]): Promise<void> {
    const [first] = limited
    if (!first) return
    const watched = [...new Set(limited.flatMap(({ tasks }) => [...tasks]))]
    const within = await tasksWithin(first.principal, watched)
    for (const task of watched.filter(id => !within.has(id))) {
      cut(
        { task },
        limited.filter(({ tasks }) => tasks.has(task)),
      )
    }
  }

  function cut(whose: { key: string } | { task: TaskId }, ending: readonly Stream[]): void {
    for (const { end } of ending) end?.leave()
    onCut(whose, ending.length)
  }

  function renew(stream: Stream, before: TokenClaims, { sendToken }: StreamEnd): void {
    const { token, expiresAt, claims } = tokens.renew(before)
    if (sendToken({ type: 'token', task: claims.task, token, expiresAt })) stream.token = claims
  }
}

/** The streams of each key that is limited to agents. */
function limitedByKey(streams: readonly Stream[]): Stream[][] {
  const byKey = new Map<string | null, Stream[]>()
  for (const stream of streams) {
    const { key, agents } = stream.principal
    if (!agents || !stream.end) continue
    const known = byKey.get(key)
    if (known) known.push(stream)
    else byKey.set(key, [stream])
  }
  return [...byKey.values()]
}

/** At two thirds of a token's life; the last one of a session has none after it. */
function renewAt({ issuedAt, expiresAt, endsAt }: TokenClaims): number {
  return expiresAt < endsAt ? (issuedAt + ((expiresAt - issuedAt) * 2) / 3) * 1_000 : Number.POSITIVE_INFINITY
}

/** What a stream counts for. */
function namesOf({ principal: { tenant, key, token }, tasks }: Stream): string[] {
  return [tenantName(tenant), keyName(key), ...(token ? [tokenName(token)] : []), ...Array.from(tasks, taskName)]
}

function tenantName(tenant: string): string {
  return `tenant ${tenant}`
}

function keyName(key: string | null): string {
  return `key ${key}`
}

function taskName(task: TaskId): string {
  return `task ${task}`
}

/** Tokens of one task and subject count together; those without a subject together with the ones that follow them. */
function tokenName({ task, session, subject }: TokenClaims): string {
  return subject === null ? `session ${session}` : `subject ${task} ${subject}`
}
