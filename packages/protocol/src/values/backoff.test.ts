import { expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'

const backoff = { firstMs: 100, maxMs: 5_000 }

test('the delay doubles up to its longest', () => {
  const delays = [1, 2, 3, 4, 7, 8, 5_000].map(failures => backoffMs(failures, { ...backoff, random: () => 1 }))
  expect(delays).toEqual([100, 200, 400, 800, 5_000, 5_000, 5_000])
})

test('the jitter takes up to half of it, or what the caller wants', () => {
  expect(backoffMs(2, { ...backoff, random: () => 0 })).toBe(100)
  expect(backoffMs(2, { ...backoff, jitter: [0.8, 1.2], random: () => 0 })).toBe(160)
  expect(backoffMs(2, { ...backoff, jitter: [0.8, 1.2], random: () => 1 })).toBe(240)
  expect(backoffMs(2, { ...backoff, jitter: [1, 1] })).toBe(200)
})
