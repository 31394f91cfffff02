import { describe, expect, test } from 'vitest'
import { defaultLimits } from '../limits.ts'
import { findJsonFault, toStorableJson, toStorableText } from './json.ts'
import { jsonObjectSchema, jsonSchema } from './json-schema.ts'

const lone = '\ud83d'

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i += 1) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

describe('a request value', () => {
  test('that is plain JSON has no fault', () => {
    expect(findJsonFault({ a: [1, 'é😀', null, { b: false }] }, defaultLimits)).toBeNull()
    expect(findJsonFault('text', defaultLimits)).toBeNull()
    expect(findJsonFault([-0, 1e308, 2 ** 60, 5e-324], defaultLimits)).toBeNull()
  })

  test('with a number too large for a double has a fault, because it would be stored as null', () => {
    expect(findJsonFault(JSON.parse('{"a":[1,-1e999]}'), defaultLimits)).toEqual({ code: 'validation_failed', path: '/a/1' })
  })

  test.each([
    ['NUL in a text', { a: ['x', 'a\0'] }, { code: 'invalid_characters', path: '/a/1' }],
    ['a lone surrogate', { a: { b: lone } }, { code: 'invalid_characters', path: '/a/b' }],
    ['NUL in a key', { a: { 'b\0': 1 } }, { code: 'invalid_characters', path: '/a' }],
    ['a text alone', '\0', { code: 'invalid_characters', path: '' }],
    ['a key that sets the prototype', JSON.parse('{"a":{"__proto__":{"admin":true}}}'), { code: 'forbidden_key', path: '/a' }],
    ['a constructor key that reaches the prototype', JSON.parse('{"constructor":{"prototype":{}}}'), { code: 'forbidden_key', path: '' }],
  ])('with %s has a fault with its path', (_, value, fault) => {
    expect(findJsonFault(value, defaultLimits)).toEqual(fault)
  })

  test('with a constructor key without a prototype has no fault', () => {
    expect(findJsonFault({ constructor: 'Bob the Builder', prototype: 1 }, defaultLimits)).toBeNull()
  })

  test('has paths as JSON pointers, with slashes and tildes escaped', () => {
    expect(findJsonFault({ 'a/b~c': '\0' }, defaultLimits)?.path).toBe('/a~1b~0c')
  })

  test('at a limit has no fault, and above it has one', () => {
    expect(findJsonFault(nested(64), defaultLimits)).toBeNull()
    expect(findJsonFault(nested(65), defaultLimits)?.code).toBe('json_too_deep')
    const items = Array.from({ length: 10_000 }, () => 1)
    expect(findJsonFault(items, defaultLimits)).toBeNull()
    expect(findJsonFault([...items, 1], defaultLimits)?.code).toBe('json_too_complex')
    expect(findJsonFault({ a: items }, defaultLimits)?.code).toBe('json_too_complex')
  })

  test('a million levels deep neither overflows the stack nor hides a later fault', () => {
    const limits = { jsonDepth: 2_000_000, jsonItems: 2_000_000 }
    const deep = nested(1_000_000)
    expect(findJsonFault(deep, defaultLimits)?.code).toBe('json_too_deep')
    expect(findJsonFault(deep, limits)).toBeNull()
    expect(findJsonFault([deep, '\0'], limits)?.code).toBe('invalid_characters')
  })
})

describe('an agent value is made storable', () => {
  test('NUL and lone surrogates become U+FFFD, in keys too, without a change of length', () => {
    expect(toStorableText(`a\0b${lone}c\ude00😀`)).toBe('a\ufffdb\ufffdc\ufffd😀')
    expect(toStorableJson({ 'k\0': ['\0', { x: lone }] }, 8)).toEqual({ 'k\ufffd': ['\ufffd', { x: '\ufffd' }] })
    expect(toStorableText(`\0${lone}`)).toHaveLength(2)
  })

  test('NaN and infinities become null, as in JSON.stringify', () => {
    expect(toStorableJson([Number.POSITIVE_INFINITY, Number.NaN, 1], 8)).toEqual([null, null, 1])
  })

  test('undefined is dropped from objects and becomes null in lists, as do holes', () => {
    const sparse: unknown[] = [undefined]
    sparse[2] = 1
    expect(JSON.stringify(toStorableJson({ a: undefined, b: sparse }, 8))).toBe('{"b":[null,null,1]}')
  })

  test('toJSON is called once; endlessly nested results throw without overflowing the stack', () => {
    expect(toStorableJson({ at: new Date(0) }, 1)).toEqual({ at: '1970-01-01T00:00:00.000Z' })
    class Mirror {
      toJSON() {
        return this
      }
    }
    expect(toStorableJson(new Mirror(), 3)).toEqual({})
    expect(() => toStorableJson({ toJSON: () => undefined }, 3)).toThrow(expect.objectContaining({ code: 'bad_event' }))
  })

  test('a key named __proto__ is kept as a key and sets no prototype', () => {
    const value = toStorableJson(JSON.parse('{"__proto__":{"admin":true}}'), 8)
    expect(JSON.stringify(value)).toBe('{"__proto__":{"admin":true}}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect((value as { admin?: boolean }).admin).toBeUndefined()
  })

  test.each([
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['a bigint', 1n],
    ['undefined', undefined],
    ['a function inside', { a: [() => 1] }],
  ])('%s is rejected', (_, value) => {
    expect(() => toStorableJson(value, 8)).toThrow(expect.objectContaining({ code: 'bad_event' }))
  })

  test('a value that is too deep or circular is rejected', () => {
    expect(() => toStorableJson(nested(9), 8)).toThrow(expect.objectContaining({ code: 'bad_event' }))
    expect(toStorableJson(nested(8), 8)).toEqual(nested(8))
    expect(() => toStorableJson(nested(1_000_000), 64)).toThrow('nested too deep')
    const circle: { self?: unknown } = {}
    circle.self = circle
    expect(() => toStorableJson(circle, 64)).toThrow('nested too deep')
  })
})

test('null is JSON, and a missing value is not', () => {
  expect(jsonSchema.safeParse(null).success).toBe(true)
  expect(jsonSchema.safeParse(undefined).success).toBe(false)
  expect(jsonObjectSchema.safeParse([]).success).toBe(false)
})
