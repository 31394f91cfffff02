/**
 * Bounds what a response brings along beside what it says: it is kept until its place is known, so the limit of what is said does not reach it.
 */
import { AgentError } from './agent-error.ts'

/** Counts a value that is to be kept; throws when it is too much in all. */
export type AsideBudget = (value: unknown) => void

export function createAsideBudget(maxChars: number): AsideBudget {
  let chars = 0
  return value => {
    chars += typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0)
    if (chars > maxChars) throw new AgentError(`The model sent more than ${maxChars} characters beside what it said`)
  }
}
