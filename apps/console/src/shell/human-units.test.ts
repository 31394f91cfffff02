import { expect, test } from 'vitest'
import { age, count, duration, size } from './human-units.ts'

test('a duration has the precision that one cares for', () => {
  expect([0, 999, 1_000, 59_900, 60_000, 3_599_000, 3_660_000, 90_000_000, -5].map(duration)).toEqual([
    ...['0 ms', '999 ms', '1.0 s', '59.9 s', '1 m 00 s', '59 m 59 s', '1 h 01 m', '1 d 01 h', '0 ms'],
  ])
})

test('an age is one number', () => {
  expect([0, 5_000, 61_000, 7_200_000, 172_800_000].map(age)).toEqual(['now', '5 s ago', '1 min ago', '2 h ago', '2 d ago'])
})

test('sizes and counts are short', () => {
  expect([0, 999, 1_500, 2_000_000].map(size)).toEqual(['0 B', '999 B', '1.5 kB', '2.0 MB'])
  expect([999, 1_234, 12_345, 3_400_000].map(count)).toEqual(['999', '1,234', '12.3k', '3.4M'])
})
