import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { previewJson } from './json-preview.ts'

describe('a preview of incomplete JSON text', () => {
  test.each([
    [undefined, 'undefined-input', undefined],
    ['{"path":"src/main.rs"}', 'successful-parse', { path: 'src/main.rs' }],
    ['{"path":"src/ma', 'repaired-parse', { path: 'src/ma' }],
    ['{"path":', 'repaired-parse', {}],
    ['{"a":1,"b', 'repaired-parse', { a: 1 }],
    ['{"a":[1,{"b":tr', 'repaired-parse', { a: [1, {}] }],
    ['[1,2,', 'repaired-parse', [1, 2]],
    ['{"a":"half of \\u00', 'repaired-parse', { a: 'half of ' }],
    ['{"a":"\\', 'repaired-parse', { a: '' }],
    ['{"a":"line\nline\tend"}', 'repaired-parse', { a: 'line\nline\tend' }],
    ['', 'failed-parse', undefined],
    ['oops', 'failed-parse', undefined],
    ['}{', 'failed-parse', undefined],
  ])('%j gives %s', (text, state, value) => {
    expect(previewJson(text)).toEqual({ state, value })
  })

  test('of every prefix of an object or a list is a value, and of the whole text is the whole value', () => {
    const container = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()))
    fc.assert(
      fc.property(container, value => {
        const text = JSON.stringify(value)
        expect(previewJson(text)).toEqual({ state: 'successful-parse', value: JSON.parse(text) })
        const prefixes = Array.from({ length: Math.min(text.length, 100) - 1 }, (_, i) => text.slice(0, i + 1))
        expect(prefixes.filter(prefix => Array.isArray(previewJson(prefix).value) !== Array.isArray(value))).toEqual([])
        expect(prefixes.filter(prefix => previewJson(prefix).state === 'failed-parse')).toEqual([])
      }),
      { numRuns: 20 },
    )
  })
})
