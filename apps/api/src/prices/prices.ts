/**
 * What the usage of a response costs: a table from the name of a model to US dollars per million tokens. `prices.json` has the list prices of the models
 * of the adapters; `MODEL_PRICES` adds to it and overrides it. The cost of a model that is not in the table is unknown, and never guessed.
 */
import { readFileSync } from 'node:fs'
import { type Prices, pricesSchema } from '@rivulet/protocol'
import builtIn from './prices.json' with { type: 'json' }

export const builtInPrices: Prices = pricesSchema.parse(builtIn)

/** @param setting JSON, or the path of a file with JSON. Throws an error with a reason for people. */
export function readPrices(setting: string): Prices {
  const given = pricesSchema.safeParse(parse(setting.trimStart().startsWith('{') ? setting : readFile(setting)))
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
