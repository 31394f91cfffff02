/**
 * The writer of a turn, whose errors have `[secret]` in place of the value of each secret. Every error of a message passes here: that of a message or a step
 * that fails, which is also cut, and that of a tool. Output that is not an error is written as it is.
 */
import { type SecretValues, type Update, withoutSecrets } from '@rivulet/protocol'
import { reportedText } from '../failure.ts'
import type { TurnWriter } from './turn-writer.ts'

export function withoutSecretErrors(writer: TurnWriter, secrets: SecretValues = {}): TurnWriter {
  return {
    ...writer,
    say: (update, options) => writer.say(cleaned(update), options),
    write: (update, options) => writer.write(cleaned(update), options),
  }

  /** What is not an update is for the writer to reject. */
  function cleaned(update: Update): Update {
    if (update?.type === 'done' && typeof update.error?.message === 'string')
      return { ...update, error: { ...update.error, message: reportedText(update.error.message, secrets) } }
    if ((update?.type !== 'full' && update?.type !== 'start') || update.content?.type !== 'tool_response' || !update.content.isError)
      return update
    return { ...update, content: { ...update.content, content: withoutSecrets(update.content.content, secrets) } }
  }
}
