/** The rate limit of each caller: a number of requests per second, and a burst after a pause. It counts only the requests of this process. */

export type TokenBuckets = {
  readonly perSecond: number
  /** Takes one. Returns 0, or after how many seconds there is one again. */
  take(name: string): number
}

/** Buckets that are full again are forgotten when there are more than this. */
const maxBuckets = 10_000

export function createTokenBuckets({ perSecond, burst }: { perSecond: number; burst: number }): TokenBuckets {
  const buckets = new Map<string, { left: number; at: number }>()
  return { perSecond, take }

  function take(name: string): number {
    const now = performance.now()
    const known = buckets.get(name)
    const left = known ? Math.min(burst, known.left + ((now - known.at) / 1_000) * perSecond) : burst
    const isAllowed = left >= 1
    buckets.set(name, { left: isAllowed ? left - 1 : left, at: now })
    if (buckets.size > maxBuckets) forgetFull(now)
    return isAllowed ? 0 : Math.ceil((1 - left) / perSecond)
  }

  function forgetFull(now: number): void {
    for (const [name, { left, at }] of buckets) if (left + ((now - at) / 1_000) * perSecond >= burst) buckets.delete(name)
  }
}
