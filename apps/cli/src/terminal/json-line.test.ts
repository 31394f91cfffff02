import { expect, test } from 'vitest'
import { toJsonLine } from './json-line.ts'

test('a value is one line that parses back to it, and no terminal obeys it', () => {
  const value = { text: 'a\u001b[31m\u009b2J\u007f\u202e\nb', list: [1, null] }
  const line = toJsonLine(value)
  expect(JSON.parse(line)).toEqual(value)
  expect(Array.from(line.slice(0, -1)).filter(char => /\p{Cc}|\u202e/u.test(char))).toEqual([])
  expect(line.endsWith('\n')).toBe(true)
})
