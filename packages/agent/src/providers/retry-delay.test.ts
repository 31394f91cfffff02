import { describe, expect, test } from 'vitest'
import { askedDelayMs, retryDelayMs } from './retry-delay.ts'

const now = Date.parse('2030-01-01T00:00:00Z')

describe('the delay requested by a response with', () => {
  test.each([
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': 'Tue, 01 Jan 2030 00:00:10 GMT' }, 10_000],
    [{ 'retry-after': 'Tue, 01 Jan 2019 00:00:10 GMT' }, 0],
    [{ 'retry-after-ms': '120', 'retry-after': '9' }, 120],
    [{ 'x-ratelimit-reset-after': '7' }, 7000],
    [{ 'x-ratelimit-reset': '12' }, 12_000],
    [{ 'x-ratelimit-reset': String(now / 1000 + 4) }, 4000],
    [{ 'x-ratelimit-reset': String(now + 4000) }, 4000],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('%j is %s ms', (headers, expected) => {
    expect(askedDelayMs(new Headers(headers as Record<string, string>), now)).toBe(expected)
  })
})

describe('the delay before a retry', () => {
  const policy = { maxRetries: 5, baseDelayMs: 100, maxDelayMs: 1000 }

  test('is what the provider requests, up to the cap', () => {
    expect(retryDelayMs(0, 700, policy)).toBe(700)
    expect(retryDelayMs(0, 700_000, policy)).toBe(1000)
  })

  test('otherwise doubles with each retry, less a little jitter, up to the cap', () => {
    for (const [retries, longest] of [
      [0, 100],
      [1, 200],
      [2, 400],
      [9, 1000],
    ] as const) {
      const delay = retryDelayMs(retries, undefined, policy)
      expect(delay).toBeLessThanOrEqual(longest)
      expect(delay).toBeGreaterThanOrEqual(longest * 0.8)
    }
  })
})
