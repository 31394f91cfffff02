/** What is told of an error that ended a turn or a message: a code for programs, a sentence for people, no stack. */
import { type Failure, RivuletError, toStorableText } from '@rivulet/protocol'

const maxLength = 2_000

export function failureOf(error: unknown): Failure {
  const code = error instanceof RivuletError ? error.code : 'agent_error'
  const message = error instanceof Error ? error.message : String(error)
  return { code, message: toStorableText(message.slice(0, maxLength)) }
}
