import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PersistentList } from './persistent-list.ts'

const change = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), at: fc.nat(400) }),
  fc.record({ kind: fc.constant('truncate' as const), at: fc.nat(400) }),
)

test('the list behaves like an array, and earlier lists never change', () => {
  fc.assert(
    fc.property(fc.nat(200), fc.array(change, { maxLength: 20 }), (length, changes) => {
      let array = Array.from({ length }, (_, i) => i)
      let list = PersistentList.from(array)
      const kept = [{ list, array }]
      for (const [n, { kind, at }] of changes.entries()) {
        const position = at % (array.length + 1)
        array = kind === 'set' ? [...array.slice(0, position), -n, ...array.slice(position + 1)] : array.slice(0, position)
        list = kind === 'set' ? list.set(position, -n) : list.truncate(position)
        kept.push({ list, array })
      }
      for (const past of kept) {
        expect(Array.from(past.list)).toEqual(past.array)
        expect(past.list.length).toBe(past.array.length)
        expect(past.list.get(past.array.length)).toBeUndefined()
        expect(past.list.get(past.array.length - 1)).toBe(past.array.at(-1))
      }
    }),
    { numRuns: 500 },
  )
})

test('a position beyond the end is rejected, because it would leave a gap', () => {
  expect(() => PersistentList.from([1]).set(2, 1)).toThrow(RangeError)
  expect(() => PersistentList.from([1]).set(-1, 1)).toThrow(RangeError)
  expect(PersistentList.from([1]).get(-1)).toBeUndefined()
})
