import fc from 'fast-check'
import { expect, test } from 'vitest'
import { largestInSlab, Slab } from './slab.ts'

test('no two pieces overlap, and each lies in its buffer', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(largestInSlab)), sizes => {
      const slab = new Slab()
      const ends = new Map<Buffer, number>()
      for (const size of sizes) {
        const from = slab.take(size)
        const { source } = slab
        expect(from).toBeGreaterThanOrEqual(ends.get(source) ?? 0)
        expect(from + size).toBeLessThanOrEqual(source.length)
        ends.set(source, from + size)
      }
    }),
  )
})

test('a task with one short frame takes little memory, and a busy one gets larger buffers, up to a limit', () => {
  const slab = new Slab()
  slab.take(100)
  expect(slab.source.length).toBe(1024)
  const lengths = new Set<number>()
  for (let i = 0; i < 1_000; i += 1) {
    slab.take(100)
    lengths.add(slab.source.length)
  }
  expect([...lengths]).toEqual([1024, 2048, 4096, 8192, 16_384])
})
