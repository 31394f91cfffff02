/** What is told of an error that ended a turn or a message: a code for programs, a sentence for people, no stack. */
import { type Failure, RivuletError, toStorableText } from '@rivulet/protocol'

const maxLength = 2_000

export function failureOf(error: unknown): Failure {
  const code = error instanceof RivuletError ? error.code : 'agent_error'
  return { code, message: toStorableText(messageOf(error).slice(0, maxLength)) }
}

/** Anything can be thrown, also what has no text: an ending that cannot be told would be none. */
function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'Something was thrown that has no text'
  }
}
