/** Slots that tenants share: half for one alone, one left for the next, and waiting callers in order. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FairSlots } from './fair-slots.ts'

test('a tenant alone has half of the slots, and another still gets some', async () => {
  const { take, taken } = open(8)
  const [own, other] = [Array.from({ length: 20 }, () => take('a')), Array.from({ length: 20 }, () => take('b'))]
  await Promise.all([own[0], other[0]])
  expect(taken()).toEqual({ a: 4, b: 2 })
  expect(await Promise.race([take('c'), own[4]])).toBe(true)
})

test('callers of a tenant are served in order, and a tenant with fewer slots before one with more', async () => {
  const { slots, take, served } = open(3)
  await Promise.all([take('a', 'a1'), take('a', 'a2'), take('b', 'b1')])
  const waiting = [take('a', 'a3'), take('a', 'a4'), take('b', 'b2')]
  await expect.poll(() => slots.waitingCount).toBe(3)
  for (const tenant of ['b', 'a', 'a', 'b']) slots.release(tenant)
  await Promise.all(waiting)
  expect(served).toEqual(['a1', 'a2', 'b1', 'b2', 'a3', 'a4'])
})

test('a caller that waits too long, whose signal fires, or that finds the line full gets none, and those behind it do', async () => {
  const slots = new FairSlots({ max: 2, waitMs: 300, maxWaiting: 2 })
  expect(await slots.acquire('a')).toBe(true)
  const leaving = new AbortController()
  const [late, left] = [slots.acquire('a'), slots.acquire('a', leaving.signal)]
  expect(await slots.acquire('a')).toBe(false)
  leaving.abort()
  expect(await left).toBe(false)
  expect(await late).toBe(false)
  expect(slots.waitingCount).toBe(0)
  const next = slots.acquire('a')
  slots.release('a')
  expect(await next).toBe(true)
})

test('no slot is lost or given twice, a free one is left while few tenants want all, and everything that waits is served', async () => {
  const action = fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), releases: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 8, max: 16 }), fc.array(action, { maxLength: 80 }), async (max, actions) => {
      const { slots, take, taken } = open(max)
      const calls: Promise<boolean>[] = []
      for (const { tenant, releases } of actions) {
        if (releases && (taken()[tenant] ?? 0) > 0) slots.release(tenant)
        else calls.push(take(tenant))
        await null
        expect(slots.takenCount).toBeLessThan(max)
      }
      for (let left = 1; left > 0; ) {
        await new Promise(resolve => setImmediate(resolve))
        for (const [tenant, count] of Object.entries(taken())) for (let i = 0; i < count; i += 1) slots.release(tenant)
        left = slots.takenCount + slots.waitingCount
      }
      expect(await Promise.all(calls)).toEqual(calls.map(() => true))
    }),
  )
})

function open(max: number) {
  const slots = new FairSlots({ max, waitMs: 60_000 })
  const served: string[] = []
  const counts = new Map<string, number>()
  const release = slots.release.bind(slots)
  slots.release = tenant => {
    counts.set(tenant, (counts.get(tenant) ?? 0) - 1)
    release(tenant)
  }
  const take = async (tenant: string, name = tenant) => {
    const hasSlot = await slots.acquire(tenant)
    counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
    served.push(name)
    return hasSlot
  }
  return { slots, take, served, taken: () => Object.fromEntries([...counts].filter(([, count]) => count > 0)) }
}
