import { expect, test } from 'vitest'
import { sumUsage } from './usage.ts'

test('counts of the same name are added, and missing counts change nothing', () => {
  expect(sumUsage([{ inputTokens: 1, outputTokens: 2 }, undefined, { outputTokens: 3, cached: 4 }])).toEqual({
    inputTokens: 1,
    outputTokens: 5,
    cached: 4,
  })
  expect(sumUsage([undefined, undefined])).toBeUndefined()
})

test('any name is allowed, and a sum too large for JSON keeps its last value', () => {
  expect(sumUsage([{ constructor: 1 }, { constructor: 2 }])).toEqual({ constructor: 3 })
  expect(sumUsage([{ tokens: Number.MAX_VALUE }, { tokens: Number.MAX_VALUE }])).toEqual({ tokens: Number.MAX_VALUE })
})
