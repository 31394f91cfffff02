/** The event in the log with which a span began. */
import { isLogged } from '@rivulet/client'
import type { Entry } from '../event-log.ts'
import type { Span } from './span.ts'

/** Null where the log has it no more, or never had it: a step, and what a child did, are in no log of this task. */
export function cursorOf({ kind, turn, attempt, message, key, label, task }: Span, entries: readonly Entry[]): string | null {
  if (task !== null) return null
  const found = entries.find(({ event }) => {
    if (!isLogged(event) || event.turn !== turn) return false
    switch (event.type) {
      case 'turn.queued':
        return kind === 'turn' || kind === 'queue'
      case 'turn.started':
        return (kind === 'attempt' && event.attempt === attempt) || (kind === 'back-off' && label.endsWith(` ${event.attempt}`))
      case 'turn.waiting':
        return key.startsWith(`wait ${event.wait.id} `)
      case 'message.started':
      case 'message.replaced':
        return ['model', 'message', 'tool'].includes(kind) && event.attempt === attempt && event.index === message
      default:
        return false
    }
  })
  return found?.event.cursor ?? null
}
