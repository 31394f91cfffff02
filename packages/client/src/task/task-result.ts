/** The outcome of a task's latest turn: one value, or one error that carries it. */
import { type FoldedTurn, isErrorCode, type Message, type OutcomeStatus, RivuletError, type Usage } from '@rivulet/protocol'

export type TaskResult = Readonly<{
  status: OutcomeStatus
  /** The latest turn, whose result this is. */
  turn: FoldedTurn
  /** Everything in that turn, its input included. */
  messages: readonly Message[]
  /** The agent's words in it. */
  text: string
  usage: Usage
}>

/** What stands between the words of two messages. */
export const messageBreak = '\n\n'

/** The agent's words in these messages. */
export function textOf(messages: readonly Message[]): string {
  return messages
    .flatMap(message => wordsOf(message) ?? [])
    .filter(Boolean)
    .join(messageBreak)
}

/** What an agent says in a message; null for messages that hold no words of an agent. */
export function wordsOf({ author, content }: Message): string | null {
  return author === 'agent' && content.type === 'text' ? content.text : null
}

export function resultOf(status: OutcomeStatus, turn: FoldedTurn, messages: readonly Message[]): TaskResult {
  return { status, turn, messages, text: textOf(messages), usage: turn.usage ?? {} }
}

/** The error of a turn that failed or was canceled, with `cause` for what is known of it; null for one that completed. */
export function failureOf(status: OutcomeStatus, turn: Pick<FoldedTurn, 'error'>, cause?: unknown): RivuletError | null {
  if (status === 'completed') return null
  if (status === 'canceled') return new RivuletError('canceled', turn.error?.message ?? 'The task was canceled', { cause })
  const { code, message = 'The task failed' } = turn.error ?? {}
  return new RivuletError(isErrorCode(code) ? code : 'agent_error', message, { cause })
}
