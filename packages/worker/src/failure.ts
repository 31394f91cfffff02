/**
 * Converts an error that ended a turn or a message to its reported form: a code for programs and a sentence for people, never a stack.
 *
 * Viewers get the text of a `RivuletError`, because its author meant it for them. Any other exception may contain addresses, queries or keys, so
 * viewers get a fixed sentence, and callers with a key and the log get the text.
 */
import {
  agentFailed,
  type Failure,
  RivuletError,
  type SecretValues,
  type TurnFailure,
  toStorableText,
  withoutSecrets,
} from '@rivulet/protocol'

const maxLength = 2_000

/** For viewers. The text is whole: who writes it removes the secrets and cuts it (`reportedText`). */
export function failureOf(error: unknown): Failure {
  if (error instanceof RivuletError) return { code: error.code, message: error.publicMessage }
  return { code: 'agent_error', message: agentFailed }
}

/** With `detail`, where there is more to know than viewers get, and without the secrets: clients of other services repeat their key in errors. */
export function fullFailureOf(error: unknown, secrets: SecretValues = {}): TurnFailure {
  const { code, message } = failureOf(error)
  const failure = { code, message: reportedText(message, secrets) }
  const detail = fullTextOf(error, secrets)
  return detail === failure.message ? failure : { ...failure, detail }
}

/** Its own text and that of its cause: what `fetch` throws says in its cause alone what happened. */
export function fullTextOf(error: unknown, secrets: SecretValues = {}): string {
  const cause = error instanceof Error && error.cause instanceof Error ? textOf(error.cause) : ''
  const own = textOf(error)
  return reportedText(cause === '' || own.includes(cause) ? own : `${own}: ${cause}`, secrets)
}

/** Anything can be thrown, also what has no text: an ending that cannot be told would be none. */
function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'Something was thrown that has no text'
  }
}

/** What an error says, as it is stored: 2,000 characters at most. Replaces secrets first, because a part of one would not be found. */
export function reportedText(text: string, secrets: SecretValues): string {
  return toStorableText(withoutSecrets(text, secrets).slice(0, maxLength))
}
