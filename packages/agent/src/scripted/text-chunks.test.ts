import { expect, test } from 'vitest'
import { chunksOf } from './text-chunks.ts'

const words = (text: string) => chunksOf(text, 'words', Math.random)

test('words have the blanks before them, and the last one those behind it', () => {
  expect(words(' One two,\n\nthree. ')).toEqual([' One', ' two,', '\n\nthree. '])
  expect([words(''), words('  '), words('a')]).toEqual([[], ['  '], ['a']])
})

test.each([
  ['blanks', ' '.repeat(200_000)],
  ['blanks between two words', `a${' '.repeat(200_000)}b`],
  ['words', 'a '.repeat(100_000)],
  ['one word', 'a'.repeat(200_000)],
])('200 KB of %s cost one look at each character, not one for every other', (_, text) => {
  const before = process.cpuUsage()
  expect(words(text).join('')).toBe(text)
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000)
})
