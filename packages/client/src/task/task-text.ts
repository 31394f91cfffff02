/**
 * The text of a task as it streams, for a terminal or a voice: yielded text cannot be withdrawn.
 *
 * The agent's text messages are yielded in the order of their indexes, with a blank line between two. If an index is sent again, by a new
 * attempt, an override or a snapshot, it continues if its text begins with the yielded text; otherwise it is yielded from its beginning, after a
 * blank line. For the exact current text use `view()`.
 */
import { type Message, messageAt, type TaskState } from '@rivulet/protocol'
import type { TaskEvent } from '../stream/task-event.ts'
import { messageBreak, wordsOf } from './task-result.ts'

export type Narrator = {
  /** What is to be said after this event, in pieces. */
  tell(event: TaskEvent, state: TaskState): string[]
}

/** @param firstTurn text of earlier turns is left out. */
export function createNarrator(firstTurn: (state: TaskState) => number): Narrator {
  /** The yielded text of each index. */
  const told = new Map<number, string>()
  let from: number | null = null
  /** The message that is being told. */
  let index = 0
  /** Whether all its text was yielded. */
  let isInStep = false
  let hasSpoken = false
  return { tell }

  function tell(event: TaskEvent, state: TaskState): string[] {
    if (isInStep && event.type === 'message.delta' && event.index === index && event.delta.type === 'text') {
      // Not compared: on a long text that would cost its whole length with each delta.
      told.set(index, (told.get(index) ?? '') + event.delta.text)
      return [event.delta.text]
    }
    if (event.type === 'snapshot') index = state.messagesFrom
    if (event.type === 'turn.started') index = Math.min(index, event.firstIndex)
    if (event.type === 'message.delta' && event.index !== index) return []
    return catchUp(state)
  }

  function catchUp(state: TaskState): string[] {
    from ??= state.turns.length > 0 ? firstTurn(state) : null
    const said: string[] = []
    isInStep = false
    for (let message = messageNow(state); message; message = messageNow(state)) {
      const words = wordsOf(message)
      if (words !== null && message.turn >= (from ?? 0)) {
        said.push(...tellMessage(message, words))
        if (message.status === 'streaming') return said
      }
      index += 1
    }
    return said
  }

  function messageNow(state: TaskState): Message | undefined {
    // A reader that knows nothing before this begins here.
    index = Math.max(index, state.messagesFrom)
    return messageAt(state, index)?.message
  }

  function tellMessage(message: Message, words: string): string[] {
    const before = told.get(message.index)
    const isBehind = before?.startsWith(words) && message.status === 'streaming'
    if (isBehind && before !== words) return []
    told.set(message.index, words)
    isInStep = message.status === 'streaming' && words !== ''
    if (words === '' || before === words || before?.startsWith(words)) return []
    if (before && words.startsWith(before)) return [words.slice(before.length)]
    forgetAfter(message.index)
    const pieces = hasSpoken ? [messageBreak, words] : [words]
    hasSpoken = true
    return pieces
  }

  /** The text after a change is yielded again. */
  function forgetAfter(last: number): void {
    for (const at of told.keys()) if (at > last) told.delete(at)
  }
}
