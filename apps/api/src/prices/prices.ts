/**
 * What the usage of a response costs: a table from the name of a model to US dollars per million tokens. `prices.json` has the list prices of the models
 * of the adapters; `MODEL_PRICES` adds to it and overrides it. The cost of a model that is not in the table is unknown, and never guessed.
 */
import { readFileSync } from 'node:fs'
import type { Usage } from '@rivulet/protocol'
import { z } from 'zod'
import builtIn from './prices.json' with { type: 'json' }

const perMillion = z.number().min(0).max(1_000_000)

const priceSchema = z.strictObject({
  input: perMillion,
  output: perMillion,
  /** Default: `input`. */
  cachedInput: perMillion.optional(),
  cacheWrite: perMillion.optional(),
  /** Whether `inputTokens` leaves out the tokens that were read from the cache and written to it, as Anthropic counts them. */
  cacheIsExtra: z.boolean().default(false),
})

const tableSchema = z.record(z.string().min(1).max(200), priceSchema)

export type Prices = z.output<typeof tableSchema>

export const builtInPrices: Prices = tableSchema.parse(builtIn)

/** @param setting JSON, or the path of a file with JSON. Throws an error with a reason for people. */
export function readPrices(setting: string): Prices {
  const given = tableSchema.safeParse(parse(setting.trimStart().startsWith('{') ? setting : readFile(setting)))
  if (given.success) return { ...builtInPrices, ...given.data }
  const [issue] = given.error.issues
  throw new Error(`must map each model to prices such as {"input": 1.25, "output": 10}: ${issue?.path.join('.')}: ${issue?.message}`)
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new Error('must be JSON that begins with {, or the path of a file that this process can read')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('is not valid JSON')
  }
}

/** In US dollars; null for a model without a price. */
export function costOf(prices: Prices, model: string | undefined, usage: Usage): number | null {
  const price = model === undefined ? undefined : priceOf(prices, model)
  if (!price) return null
  const { input, output, cachedInput = input, cacheWrite = input, cacheIsExtra } = price
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const uncached = cacheIsExtra ? inputTokens : Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  return (uncached * input + cacheReadTokens * cachedInput + cacheWriteTokens * cacheWrite + outputTokens * output) / 1_000_000
}

/** A provider may call a model by its date: `claude-sonnet-4-5-20250929` has the price of `claude-sonnet-4-5`. */
function priceOf(prices: Prices, model: string) {
  const dated = model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, '')
  return [model, dated].flatMap(name => (Object.hasOwn(prices, name) ? [prices[name]] : []))[0]
}
