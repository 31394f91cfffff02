/** JSON on the command line. */
import type { Json } from '@rivulet/client'
import { InvalidArgumentError } from 'commander'

export function parseJson(text: string): Json {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new InvalidArgumentError(`Not valid JSON: ${error instanceof Error ? error.message : error}`)
  }
}
