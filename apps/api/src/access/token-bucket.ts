/**
 * The rate limit of each caller: a number of requests per second, and a burst after a pause. It counts the requests of this process at once, and those
 * of other processes when they publish them (`limit-sharing.ts`), so a bucket can have less than nothing.
 */

export type TokenBuckets = {
  readonly perSecond: number
  /** Takes one. Returns 0, or after how many seconds there is one again. */
  take(name: string): number
  /** Requests that another process has accepted. */
  spend(name: string, count: number): void
  /** Requests that this process has accepted since the last call. */
  takeSpent(): Record<string, number>
}

/** Buckets that are full again are forgotten when there are more than this. */
const maxBuckets = 10_000

export function createTokenBuckets({ perSecond, burst }: { perSecond: number; burst: number }): TokenBuckets {
  const buckets = new Map<string, { left: number; at: number }>()
  let spent = new Map<string, number>()
  return { perSecond, take, spend, takeSpent }

  function take(name: string): number {
    const now = performance.now()
    const left = leftAt(name, now)
    const isAllowed = left >= 1
    if (isAllowed) spent.set(name, (spent.get(name) ?? 0) + 1)
    put(name, isAllowed ? left - 1 : left, now)
    return isAllowed ? 0 : Math.ceil((1 - left) / perSecond)
  }

  /** The debt is at most one burst, so that a caller never waits longer than a burst takes to fill twice. */
  function spend(name: string, count: number): void {
    const now = performance.now()
    put(name, Math.max(-burst, leftAt(name, now) - count), now)
  }

  function takeSpent(): Record<string, number> {
    const taken = Object.fromEntries(spent)
    spent = new Map()
    return taken
  }

  function put(name: string, left: number, now: number): void {
    buckets.set(name, { left, at: now })
    if (buckets.size > maxBuckets) forgetFull(now)
  }

  function leftAt(name: string, now: number): number {
    const known = buckets.get(name)
    return known ? Math.min(burst, known.left + ((now - known.at) / 1_000) * perSecond) : burst
  }

  function forgetFull(now: number): void {
    for (const [name, { left, at }] of buckets) if (left + ((now - at) / 1_000) * perSecond >= burst) buckets.delete(name)
  }
}
