import { expect, test } from 'vitest'
import { sumUsage } from './usage.ts'

test('counts of the same name are added, and those that were not reported change nothing', () => {
  expect(sumUsage([{ inputTokens: 1, outputTokens: 2 }, undefined, { outputTokens: 3, cached: 4 }])).toEqual({
    inputTokens: 1,
    outputTokens: 5,
    cached: 4,
  })
  expect(sumUsage([undefined, undefined])).toBeUndefined()
})

test('a name is only a name, and a sum that JSON cannot hold is left at what it was', () => {
  expect(sumUsage([{ constructor: 1 }, { constructor: 2 }])).toEqual({ constructor: 3 })
  expect(sumUsage([{ tokens: Number.MAX_VALUE }, { tokens: Number.MAX_VALUE }])).toEqual({ tokens: Number.MAX_VALUE })
})
