/** The delay before a retry. Every part of the platform that retries takes it from here. */

export type Backoff = {
  /** After the first failure; it doubles with each further failure in a row. */
  firstMs: number
  /** Before the jitter. */
  maxMs: number
  /** The delay is multiplied by a random number between these, so that clients that failed together do not retry together. Default 0.5 to 1. */
  jitter?: readonly [from: number, to: number]
  /** Default Math.random. */
  random?: () => number
}

/** @param failures in a row, from 1. */
export function backoffMs(failures: number, { firstMs, maxMs, jitter: [from, to] = [0.5, 1], random = Math.random }: Backoff): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (from + random() * (to - from))
}
