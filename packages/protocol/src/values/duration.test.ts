import { expect, test } from 'vitest'
import { durationMs } from './duration.ts'

test.each([
  [1_500, 1_500],
  ['250ms', 250],
  ['20s', 20_000],
  ['1.5h', 5_400_000],
  ['3d', 259_200_000],
  ['0s', 0],
])('%s is %d ms', (duration, ms) => {
  expect(durationMs(duration)).toBe(ms)
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '', '3', 'd', '3 d', '-3d', '1e3s', '3w', null, {}])(
  '%s is no length of time',
  value => {
    expect(durationMs(value)).toBeNull()
  },
)
