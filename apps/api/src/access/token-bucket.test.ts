import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTokenBuckets } from './token-bucket.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

test('as many as were saved up are had at once, then as many as come by', () => {
  const { take } = createTokenBuckets({ perSecond: 2, burst: 5 })
  expect(Array.from({ length: 7 }, () => take('a'))).toEqual([0, 0, 0, 0, 0, 1, 1])
  vi.advanceTimersByTime(1_000)
  expect(Array.from({ length: 3 }, () => take('a'))).toEqual([0, 0, 1])
})

test('a rejected caller gets the time to retry, and is served then', () => {
  const { take } = createTokenBuckets({ perSecond: 0.25, burst: 1 })
  take('a')
  const seconds = take('a')
  expect(seconds).toBe(4)
  vi.advanceTimersByTime(seconds * 1_000)
  expect(take('a')).toBe(0)
})

test('keys do not affect each other, and no more than the burst accumulates', () => {
  const { take } = createTokenBuckets({ perSecond: 1, burst: 2 })
  expect([take('a'), take('a'), take('a'), take('b')]).toEqual([0, 0, 1, 0])
  vi.advanceTimersByTime(3_600_000)
  expect([take('a'), take('a'), take('a')]).toEqual([0, 0, 1])
})

test('callers that come once do not fill the memory', () => {
  const { take } = createTokenBuckets({ perSecond: 100, burst: 1 })
  const sizes = vi.spyOn(Map.prototype, 'delete')
  for (let i = 0; i < 30_000; i += 1) {
    take(`caller ${i}`)
    vi.advanceTimersByTime(1)
  }
  expect(sizes.mock.calls.length).toBeGreaterThan(15_000)
  sizes.mockRestore()
})
