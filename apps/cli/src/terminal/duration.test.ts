import { expect, test } from 'vitest'
import { formatAge, formatDuration, parseDuration } from './duration.ts'

test.each([
  [-5, '0 ms'],
  [12.4, '12 ms'],
  [999, '999 ms'],
  [1_000, '1.0 s'],
  [59_999, '59.9 s'],
  [61_000, '1 m 1 s'],
  [3_600_000, '1 h 0 m'],
  [90_000_000, '1 d'],
])('%d ms read as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

test('an age is a duration, and a time in the future is now', () => {
  const now = Date.parse('2030-01-01T00:00:10.000Z')
  expect(formatAge('2030-01-01T00:00:05.500Z', now)).toBe('4 s ago')
  expect(formatAge('2030-01-01T00:01:00.000Z', now)).toBe('now')
})

test.each([
  ['90d', 7_776_000_000],
  ['12h', 43_200_000],
  ['30m', 1_800_000],
  ['10s', 10_000],
  ['10', null],
  ['-1d', null],
  ['1w', null],
])('%s is meant as %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})
