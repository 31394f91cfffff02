import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type LimitSharing, shareLimits } from './limit-sharing.ts'
import { type BucketName, createTokenBuckets } from './token-bucket.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Processes that receive each other's messages, as by Redis, while it is available. */
function start(count: number, isThere = () => true) {
  const sharings: LimitSharing[] = []
  return Array.from({ length: count }, (_, i) => {
    const limit = { perSecond: 1, burst: 4 }
    const buckets = createTokenBuckets({ key: limit, tenant: limit })
    /** The seconds to wait. */
    const rates = { ...buckets, take: (name: BucketName) => buckets.take([name])?.waitSeconds ?? 0 }
    const held: Record<string, number> = {}
    const asked: number[] = []
    const count = (part: number) => {
      asked.push(part)
      return { ...held }
    }
    const streams = () => ({ held: count })
    const publish = (message: string) => {
      if (isThere()) for (const { heard } of sharings) heard(message)
    }
    const sharing = shareLimits({ id: String(i), rates: buckets, streams, publish })
    sharings.push(sharing)
    return { rates, held, asked, ...sharing }
  })
}

test('requests that one process accepts count in the others, and are owed where each accepted a burst', () => {
  const [a, b] = start(2)
  for (let i = 0; i < 4; i++) expect(a?.rates.take('key k')).toBe(0)
  vi.advanceTimersByTime(250)
  expect(b?.rates.take('key k')).toBeGreaterThan(0)
  expect(b?.rates.take('key other')).toBe(0)
  for (let i = 0; i < 4; i++) b?.rates.take('tenant t')
  vi.advanceTimersByTime(250)
  expect([a?.rates.take('tenant t'), a?.rates.take('tenant other')]).toEqual([1, 0])
  const [c, d] = start(2)
  for (let i = 0; i < 4; i++) expect([c?.rates.take('key k'), d?.rates.take('key k')]).toEqual([0, 0])
  vi.advanceTimersByTime(1_250)
  expect(c?.rates.take('key k')).toBeGreaterThan(1)
})

test('without Redis each process counts by itself, and goes on together afterwards', () => {
  let isThere = false
  const [a, b] = start(2, () => isThere)
  for (let i = 0; i < 4; i++) a?.rates.take('key k')
  vi.advanceTimersByTime(1_000)
  expect(b?.rates.take('key k')).toBe(0)
  isThere = true
  a?.rates.take('key k')
  vi.advanceTimersByTime(250)
  expect([b?.rates.take('key k'), b?.rates.take('key k'), (b?.rates.take('key k') ?? 0) > 0]).toEqual([0, 0, true])
})

test('streams of another process count while it publishes; the more processes there are, the smaller counts they publish', () => {
  const [a, b, c] = start(3)
  Object.assign(b?.held ?? {}, { 'key k': 3 })
  Object.assign(c?.held ?? {}, { 'key k': 2, 'task t': 1 })
  vi.advanceTimersByTime(1_250)
  expect([a?.elsewhere('key k'), a?.elsewhere('task t'), b?.elsewhere('key k'), a?.elsewhere('other')]).toEqual([5, 1, 2, 0])
  expect([a?.asked[0], a?.asked.at(-1)]).toEqual([0.25, 0.25 / 3])
  b?.close()
  vi.advanceTimersByTime(6_000)
  expect(a?.elsewhere('key k')).toBe(2)
})

test('a message that is not one of a process changes nothing', () => {
  const [a] = start(1)
  for (const text of ['', '{', 'null', '{"from":1}', '{"from":"x","spent":{"key k":-4,"key other":"4","unknown":4},"held":[null]}'])
    a?.heard(text)
  expect([a?.rates.take('key k'), a?.elsewhere('key k')]).toEqual([0, 0])
})
