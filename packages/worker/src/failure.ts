/**
 * Converts an error that ended a turn or a message to its reported form: a code for programs and a sentence for people, never a stack.
 *
 * Viewers get the text of a `RivuletError`, because its author meant it for them. Any other exception may contain addresses, queries or keys, so
 * viewers get a fixed sentence, and callers with a key and the log get the text.
 */
import { agentFailed, type Failure, RivuletError, type TurnFailure, toStorableText } from '@rivulet/protocol'

/** Of the turn, by name. */
type Secrets = Readonly<Record<string, string>>

const maxLength = 2_000

/** For viewers. */
export function failureOf(error: unknown, secrets: Secrets = {}): Failure {
  if (error instanceof RivuletError) return { code: error.code, message: clip(error.publicMessage, secrets) }
  return { code: 'agent_error', message: agentFailed }
}

/** With `detail`, where there is more to know than viewers get, and without the secrets: clients of other services repeat their key in errors. */
export function fullFailureOf(error: unknown, secrets: Secrets = {}): TurnFailure {
  const failure = failureOf(error, secrets)
  const detail = fullTextOf(error, secrets)
  return detail === failure.message ? failure : { ...failure, detail }
}

/** Its own text and that of its cause: what `fetch` throws says in its cause alone what happened. */
export function fullTextOf(error: unknown, secrets: Secrets = {}): string {
  const cause = error instanceof Error && error.cause instanceof Error ? textOf(error.cause) : ''
  const own = textOf(error)
  return clip(cause === '' || own.includes(cause) ? own : `${own}: ${cause}`, secrets)
}

/** Anything can be thrown, also what has no text: an ending that cannot be told would be none. */
function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'Something was thrown that has no text'
  }
}

/** Replaces secrets first, because a part of one would not be found, and the longest of them first, because one may be a part of another. */
function clip(text: string, secrets: Secrets): string {
  const values = Object.values(secrets).sort((a, b) => b.length - a.length)
  const shown = values.reduce((rest, value) => rest.replaceAll(value, '[secret]'), text)
  return toStorableText(shown.slice(0, maxLength))
}
