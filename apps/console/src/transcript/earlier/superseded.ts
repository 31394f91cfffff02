/**
 * What earlier attempts said, as far as this page has seen it. When a turn is tried again its messages are gone from the task; here they stay
 * for a reader that was watching.
 */
import type { FoldedTurn, Message } from '@rivulet/client'

export type Superseded = { turnNumber: number; attempt: number; messages: readonly Message[] }

/** What the step from one state to the next made void. */
export function supersededBy(before: readonly Message[], turns: readonly FoldedTurn[], after: readonly Message[]): Superseded[] {
  if (before === after) return []
  const found = new Map<string, Superseded & { messages: Message[] }>()
  // From the end: only the latest turns can be tried again, and a task may have thousands of messages.
  for (let place = before.length - 1; place >= 0; place -= 1) {
    const message = before[place]
    const turn = message && turns.find(({ number }) => number === message.turn)
    if (!message || !turn || turn.attempt <= message.attempt) break
    if (message.author === 'user') continue
    const key = `${message.turn} ${message.attempt}`
    const group = found.get(key) ?? { turnNumber: message.turn, attempt: message.attempt, messages: [] }
    group.messages.unshift(message)
    found.set(key, group)
  }
  return [...found.values()].reverse()
}
