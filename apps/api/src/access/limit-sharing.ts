/**
 * Shares the limits of callers between API processes. Each process publishes the requests that it accepted, four times a second, so no request waits for
 * Redis. Between two messages, and while Redis is unavailable, each process counts by itself: each may accept a burst once, and the caller owes it afterwards.
 *
 * Of open streams, a process publishes counts of at least an eighth of their limit with two processes, and of a sixteenth with four. Smaller counts cannot
 * add up to more than a quarter of the limit.
 */
import type { OpenStreams } from './open-streams.ts'
import type { TokenBuckets } from './token-bucket.ts'

const publishMs = 250
/** Streams change more slowly, and a message about them is also a sign of life. */
const ticksPerCount = 4
/** A process that published nothing for so long holds no streams. */
const silentMs = 5_000
/** The part of a limit that unpublished counts may have, all processes together. */
const unpublishedPart = 0.25

export type LimitSharing = { heard(message: string): void; elsewhere(name: string): number; close(): void }

type Message = { from: string; spent: Record<string, number>; held?: Record<string, number> }

export function shareLimits(deps: {
  id: string
  rates: TokenBuckets
  streams: () => Pick<OpenStreams, 'held'>
  publish: (message: string) => void
}): LimitSharing {
  const { id, rates, streams, publish } = deps
  const others = new Map<string, { held: Record<string, number>; at: number }>()
  let tick = 0
  const clock = setInterval(publishCounts, publishMs)
  clock.unref()
  return { heard, elsewhere, close: () => clearInterval(clock) }

  function publishCounts(): void {
    const spent = rates.takeSpent()
    const isCount = tick++ % ticksPerCount === 0
    if (!isCount && Object.keys(spent).length === 0) return
    const held = isCount ? { held: streams().held(unpublishedPart / (others.size + 1)) } : {}
    publish(JSON.stringify({ from: id, spent, ...held } satisfies Message))
  }

  function heard(text: string): void {
    const message = parse(text)
    if (!message || message.from === id) return
    for (const [name, count] of countsIn(message.spent)) rates.spend(name, count)
    if (message.held) others.set(message.from, { held: Object.fromEntries(countsIn(message.held)), at: performance.now() })
  }

  function elsewhere(name: string): number {
    let count = 0
    for (const [from, { held, at }] of others) {
      if (performance.now() - at > silentMs) others.delete(from)
      else count += held[name] ?? 0
    }
    return count
  }
}

function parse(text: string): (Partial<Message> & { from: string }) | null {
  try {
    const message: unknown = JSON.parse(text)
    return typeof message === 'object' && message !== null && 'from' in message && typeof message.from === 'string'
      ? { ...message, from: message.from }
      : null
  } catch {
    return null
  }
}

/** A worker with access to Redis can write here, too, so every value is checked. */
function countsIn(counts: unknown): [name: string, count: number][] {
  if (typeof counts !== 'object' || counts === null) return []
  return Object.entries(counts).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1]) && entry[1] > 0)
}
