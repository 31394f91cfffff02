/** Returns the cost of a response's usage, by a table from the name of a model to US dollars per million tokens. */
import { z } from 'zod'
import type { Usage } from '../entities.ts'

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

export const pricesSchema = z.record(z.string().min(1).max(200), priceSchema)

export type Prices = z.output<typeof pricesSchema>

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
