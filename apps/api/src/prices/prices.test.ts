import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { costOf } from '@rivulet/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { builtInPrices, readPrices } from './prices.ts'

const million = 1_000_000

describe('the cost of a response', () => {
  test.each([
    ['gpt-4o', { inputTokens: million, outputTokens: million }, 12.5],
    ['gpt-4o-2024-11-20', { inputTokens: million }, 2.5],
    // OpenAI counts cached tokens as input, too; Anthropic does not.
    ['gpt-4o', { inputTokens: million, cacheReadTokens: million }, 1.25],
    ['claude-sonnet-4-5-20250929', { inputTokens: million, cacheReadTokens: million, cacheWriteTokens: million }, 7.05],
    ['scripted', { inputTokens: million }, 0],
    ['gpt-4o', { pages: 3 }, 0],
    ['homegrown', { inputTokens: million }, null],
    ['constructor', { inputTokens: million }, null],
    [undefined, { inputTokens: million }, null],
  ])('of %s for %j is %s', (model, usage, cost) => {
    const found = costOf(builtInPrices, model, usage)
    if (cost === null) expect(found).toBeNull()
    else expect(found).toBeCloseTo(cost, 9)
  })
})

describe('the setting', () => {
  test('adds to the built-in prices and overrides them, as JSON or as a file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'prices-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'prices.json')
    const json = JSON.stringify({ homegrown: { input: 1, output: 2 }, 'gpt-4o': { input: 0, output: 0 } })
    writeFileSync(file, json)
    for (const prices of [readPrices(json), readPrices(file)]) {
      expect(costOf(prices, 'homegrown', { inputTokens: million, outputTokens: million })).toBe(3)
      expect(costOf(prices, 'gpt-4o', { inputTokens: million })).toBe(0)
      expect(prices['gpt-5']).toEqual(builtInPrices['gpt-5'])
    }
  })

  test.each([
    ['{"a": ', 'is not valid JSON'],
    ['/no/such/file.json', 'or the path of a file that this process can read'],
    ['{"a": {"input": -1, "output": 2}}', 'a.input'],
    ['{"a": {"input": 1}}', 'a.output'],
    ['{"a": {"input": 1, "output": 2, "perCall": 3}}', 'Unrecognized key'],
  ])('%s is rejected with its reason', (setting, reason) => {
    expect(() => readPrices(setting)).toThrow(reason)
  })
})
