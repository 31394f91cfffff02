import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTokenBuckets } from './token-bucket.ts'

/** Takes of the bucket of one key; returns the seconds to wait. */
function takerOf(key: { perSecond: number; burst: number }) {
  const { take } = createTokenBuckets({ key, tenant: key })
  return (name: string) => take([`key ${name}`])?.waitSeconds ?? 0
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

test('as many as were saved up are had at once, then as many as come by', () => {
  const take = takerOf({ perSecond: 2, burst: 5 })
  expect(Array.from({ length: 7 }, () => take('a'))).toEqual([0, 0, 0, 0, 0, 1, 1])
  vi.advanceTimersByTime(1_000)
  expect(Array.from({ length: 3 }, () => take('a'))).toEqual([0, 0, 1])
})

test('a rejected caller gets the time to retry, and is served then', () => {
  const take = takerOf({ perSecond: 0.25, burst: 1 })
  take('a')
  const seconds = take('a')
  expect(seconds).toBe(4)
  vi.advanceTimersByTime(seconds * 1_000)
  expect(take('a')).toBe(0)
})

test('keys do not affect each other, and no more than the burst accumulates', () => {
  const take = takerOf({ perSecond: 1, burst: 2 })
  expect([take('a'), take('a'), take('a'), take('b')]).toEqual([0, 0, 1, 0])
  vi.advanceTimersByTime(3_600_000)
  expect([take('a'), take('a'), take('a')]).toEqual([0, 0, 1])
})

test('callers that come once do not fill the memory', () => {
  const take = takerOf({ perSecond: 100, burst: 1 })
  const sizes = vi.spyOn(Map.prototype, 'delete')
  for (let i = 0; i < 30_000; i += 1) {
    take(`caller ${i}`)
    vi.advanceTimersByTime(1)
  }
  expect(sizes.mock.calls.length).toBeGreaterThan(15_000)
  sizes.mockRestore()
})

test('a request takes of the buckets of its key and of its tenant, and of none if one is empty', () => {
  const buckets = createTokenBuckets({ key: { perSecond: 1, burst: 2 }, tenant: { perSecond: 0.5, burst: 3 } })
  const ask = (key: string, tenant: string) => buckets.take([`key ${key}`, `tenant ${tenant}`])
  expect([ask('a', 'acme'), ask('a', 'acme'), ask('a', 'acme'), ask('b', 'acme')]).toEqual([
    ...[null, null, { kind: 'key', perSecond: 1, waitSeconds: 1 }],
    null,
  ])
  for (let i = 0; i < 5; i += 1) expect(ask('b', 'acme')).toEqual({ kind: 'tenant', perSecond: 0.5, waitSeconds: 2 })
  // Both are empty: the caller waits for the one that takes longer.
  expect(ask('a', 'acme')).toEqual({ kind: 'tenant', perSecond: 0.5, waitSeconds: 2 })
  expect([ask('c', 'other'), ask('b', 'other')]).toEqual([null, null])
  expect(buckets.takeSpent()).toEqual({ 'key a': 2, 'key b': 2, 'key c': 1, 'tenant acme': 3, 'tenant other': 2 })
  buckets.spend('nothing known', 9)
  buckets.spend('tenant third', 3)
  expect(ask('d', 'third')).toMatchObject({ kind: 'tenant' })
})
