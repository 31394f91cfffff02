import { expect, test } from 'vitest'
import { mergePatch } from './merge-patch.ts'

test.each([
  [{ a: 1 }, { a: 2 }, { a: 2 }],
  [{ a: 1 }, { b: 2 }, { a: 1, b: 2 }],
  [{ a: 1, b: 2 }, { a: null }, { b: 2 }],
  [{ a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { c: 2 } }],
  [{ a: [1, 2] }, { a: [3] }, { a: [3] }],
  [{ a: 1 }, { a: { b: { c: null, d: 1 } } }, { a: { b: { d: 1 } } }],
  [null, { a: 1 }, { a: 1 }],
  [[1], { a: null, b: 1 }, { b: 1 }],
])('%j with the patch %j is %j', (target, patch, merged) => {
  expect(mergePatch(target, patch)).toEqual(merged)
})

test('a patch changes neither its target nor the prototype of a value', () => {
  const target = { a: { b: 1 } }
  const merged = mergePatch(target, JSON.parse('{"a":{"c":1},"__proto__":{"x":1}}'))
  expect(target).toEqual({ a: { b: 1 } })
  expect(Object.hasOwn(merged, '__proto__')).toBe(true)
  expect(({} as { x?: number }).x).toBeUndefined()
})
