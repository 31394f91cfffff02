/**
 * Converts an error that ended a turn or a message to its reported form: a code for programs and a sentence for people, never a stack.
 *
 * Viewers get the text of a `RivuletError`, because its author meant it for them. Any other exception may contain addresses, queries or keys, so
 * viewers get a fixed sentence, and callers with a key and the log get the text.
 */
import { agentFailed, type Failure, RivuletError, type TurnFailure, toStorableText } from '@rivulet/protocol'

const maxLength = 2_000

/** For viewers. */
export function failureOf(error: unknown): Failure {
  if (error instanceof RivuletError) return { code: error.code, message: clip(error.publicMessage) }
  return { code: 'agent_error', message: agentFailed }
}

/** With `detail`, where there is more to know than viewers get. */
export function fullFailureOf(error: unknown): TurnFailure {
  const failure = failureOf(error)
  const detail = fullTextOf(error)
  return detail === failure.message ? failure : { ...failure, detail }
}

/** Its own text and that of its cause: what `fetch` throws says in its cause alone what happened. */
export function fullTextOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? textOf(error.cause) : ''
  const own = textOf(error)
  return clip(cause === '' || own.includes(cause) ? own : `${own}: ${cause}`)
}

/** Anything can be thrown, also what has no text: an ending that cannot be told would be none. */
function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'Something was thrown that has no text'
  }
}

function clip(text: string): string {
  return toStorableText(text.slice(0, maxLength))
}
