/**
 * The rate limits of callers: for each key and each tenant a number of requests per second, and a burst after a pause. It counts the requests of this
 * process at once, and those of other processes when they publish them (`limit-sharing.ts`), so a bucket can have less than nothing.
 */

export type RateKind = 'key' | 'tenant'
export type BucketName = `${RateKind} ${string}`

type RateLimit = { perSecond: number; burst: number }
type RateLimits = Record<RateKind, RateLimit>

/** The bucket that has none, the one that takes longest if there are several, and after how many seconds it has one again. */
type EmptyBucket = { kind: RateKind; perSecond: number; waitSeconds: number }

export type TokenBuckets = {
  /** Takes one of each, or none of any, because a request that one limit rejects must not use up another. */
  take(names: readonly BucketName[]): EmptyBucket | null
  /** Requests that another process has accepted. A name that is not one of a bucket has no effect. */
  spend(name: string, count: number): void
  /** Requests that this process has accepted since the last call. */
  takeSpent(): Record<string, number>
}

/** Buckets that are full again are forgotten when there are more than this. */
const maxBuckets = 10_000

export function createTokenBuckets(limits: RateLimits): TokenBuckets {
  const buckets = new Map<BucketName, { left: number; at: number }>()
  let spent = new Map<BucketName, number>()
  return { take, spend, takeSpent }

  function take(names: readonly BucketName[]): EmptyBucket | null {
    const now = performance.now()
    const empty = names.filter(name => leftAt(name, now) < 1).map(name => emptyAt(name, now))
    if (empty.length > 0) return empty.reduce((longest, next) => (next.waitSeconds > longest.waitSeconds ? next : longest))
    for (const name of names) {
      spent.set(name, (spent.get(name) ?? 0) + 1)
      put(name, leftAt(name, now) - 1, now)
    }
    return null
  }

  /** The debt is at most one burst, so that a caller never waits longer than a burst takes to fill twice. */
  function spend(name: string, count: number): void {
    if (!isBucket(name)) return
    const now = performance.now()
    put(name, Math.max(-limits[kindOf(name)].burst, leftAt(name, now) - count), now)
  }

  function takeSpent(): Record<string, number> {
    const taken = Object.fromEntries(spent)
    spent = new Map()
    return taken
  }

  function put(name: BucketName, left: number, now: number): void {
    buckets.set(name, { left, at: now })
    if (buckets.size > maxBuckets)
      for (const known of buckets.keys()) if (leftAt(known, now) >= limits[kindOf(known)].burst) buckets.delete(known)
  }

  function leftAt(name: BucketName, now: number): number {
    const { perSecond, burst } = limits[kindOf(name)]
    const known = buckets.get(name)
    return known ? Math.min(burst, known.left + ((now - known.at) / 1_000) * perSecond) : burst
  }

  function emptyAt(name: BucketName, now: number): EmptyBucket {
    const kind = kindOf(name)
    const { perSecond } = limits[kind]
    return { kind, perSecond, waitSeconds: Math.ceil((1 - leftAt(name, now)) / perSecond) }
  }
}

function kindOf(name: BucketName): RateKind {
  return name.startsWith('key ') ? 'key' : 'tenant'
}

function isBucket(name: string): name is BucketName {
  return /^(key|tenant) /.test(name)
}
