/** Limits what a response keeps besides its text (signatures, citations …), because the limit of a turn does not count values that are held back. */
import { AgentError } from '../agent-error.ts'

/** Counts a value that will be kept. Throws when the total exceeds the limit. */
export type AsideBudget = (value: unknown) => void

export function createAsideBudget(maxChars: number): AsideBudget {
  let chars = 0
  return value => {
    chars += typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0)
    if (chars > maxChars)
      throw new AgentError(
        `The model sent more than ${maxChars} characters of signatures, citations and other metadata (limits.asideChars)`,
      )
  }
}
