/** The delay before a retry: what the provider's headers request, else one that doubles; never more than `maxDelayMs`. */
import { backoffMs } from '@rivulet/protocol'

export type RetryPolicy = {
  /** Requests after the first. Default 2. */
  maxRetries: number
  /** Delay before the first retry; doubles with each. Default 500. */
  baseDelayMs: number
  /** The longest delay, even where the provider requests more. Default 30,000. */
  maxDelayMs: number
}

export const defaultRetryPolicy: RetryPolicy = { maxRetries: 2, baseDelayMs: 500, maxDelayMs: 30_000 }

/** @param retries made so far, from 0. */
export function retryDelayMs(retries: number, askedMs: number | undefined, policy: RetryPolicy): number {
  const { baseDelayMs, maxDelayMs } = policy
  if (askedMs === undefined) return backoffMs(retries + 1, { firstMs: baseDelayMs, maxMs: maxDelayMs, jitter: [0.8, 1] })
  return Math.min(Math.max(0, askedMs), maxDelayMs)
}

/** The delay that the response headers request. */
export function askedDelayMs(headers: Headers, now = Date.now()): number | undefined {
  return (
    milliseconds(headers.get('retry-after-ms'), 1) ??
    milliseconds(headers.get('retry-after'), 1000) ??
    untilDate(headers.get('retry-after'), now) ??
    milliseconds(headers.get('x-ratelimit-reset-after'), 1000) ??
    untilReset(headers.get('x-ratelimit-reset'), now)
  )
}

function milliseconds(value: string | null, unitMs: number): number | undefined {
  return value !== null && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) * unitMs : undefined
}

function untilDate(value: string | null, now: number): number | undefined {
  const time = Date.parse(value ?? '')
  return Number.isNaN(time) ? undefined : Math.max(0, time - now)
}

/** The value is seconds from now, or a time in seconds or milliseconds since 1970; its size decides which. */
function untilReset(value: string | null, now: number): number | undefined {
  const number = milliseconds(value, 1)
  if (number === undefined) return undefined
  if (number > 1e11) return Math.max(0, number - now)
  return number > 1e8 ? Math.max(0, number * 1000 - now) : number * 1000
}
