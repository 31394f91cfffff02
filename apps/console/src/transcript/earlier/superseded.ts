/**
 * The messages of earlier attempts that this page has received. A retry removes them from the task; the page keeps them for its reader.
 */
import type { FoldedTurn, Message } from '@rivulet/client'

export type Superseded = { turnNumber: number; attempt: number; messages: readonly Message[] }

/** What the step from one state to the next made void. */
export function supersededBy(before: readonly Message[], turns: readonly FoldedTurn[], after: readonly Message[]): Superseded[] {
  if (before === after) return []
  const found = new Map<string, Superseded & { messages: Message[] }>()
  // Search from the end, because only the latest turns can be retried and a task may have thousands of messages.
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
