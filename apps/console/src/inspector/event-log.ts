/**
 * The log of a task as it came to this page, and the fold of any prefix of it.
 *
 * It holds a limited number of entries. What is dropped at its beginning is folded into `base`, so that every prefix that can still be chosen
 * has the same fold as before.
 */
import { applyOrSkip, emptyState, isLogged, restoreState, type TaskEvent, type TaskState } from '@rivulet/client'

export type Entry = {
  /** Unique, and growing by one. */
  number: number
  event: TaskEvent
  /** As JSON, in UTF-16 units. */
  size: number
  /** When it was written; null for frames that are not in the log. */
  at: number | null
  /** Time since the previous event; null if unknown. */
  sinceMs: number | null
}

export type EventLog = Readonly<{ entries: readonly Entry[]; base: TaskState; dropped: number; bytes: number; isCaughtUp: boolean }>

export const emptyLog: EventLog = { entries: [], base: emptyState, dropped: 0, bytes: 0, isCaughtUp: false }

const mostEntries = 50_000
const droppedAtOnce = 10_000

export function appendEvents(log: EventLog, events: readonly TaskEvent[], most = mostEntries, atOnce = droppedAtOnce): EventLog {
  if (events.length === 0) return log
  let last = log.entries.findLast(({ at }) => at !== null)?.at ?? null
  let number = log.dropped + log.entries.length
  let { bytes, isCaughtUp } = log
  const added = events.map((event): Entry => {
    const at = isLogged(event) ? event.at : null
    const sinceMs = at !== null && last !== null ? Math.max(0, at - last) : null
    last = at ?? last
    const size = JSON.stringify(event).length
    bytes += size
    if (event.type === 'caught_up') isCaughtUp = true
    return { number: number++, event, size, at, sinceMs }
  })
  const entries = [...log.entries, ...added]
  if (entries.length <= most) return { ...log, entries, bytes, isCaughtUp }
  const gone = Math.max(atOnce, entries.length - most)
  const base = fold(log.base, entries.slice(0, gone))
  return { entries: entries.slice(gone), base, dropped: log.dropped + gone, bytes, isCaughtUp }
}

/** The task as it was when this entry had been applied. */
export function stateAt(log: EventLog, position: number): TaskState {
  return fold(log.base, log.entries.slice(0, position + 1))
}

export function positionOf(log: EventLog, cursor: string): number {
  return log.entries.findIndex(({ event }) => event.cursor === cursor)
}

function fold(from: TaskState, entries: readonly Entry[]): TaskState {
  return entries.reduce((state, { event }) => {
    if (event.type === 'snapshot') {
      const { task, turns, messages, messagesFrom } = event
      return restoreState(event.cursor, { status: task.status, turns, messages, messagesFrom, state: event.state })
    }
    if (!isLogged(event)) return state
    // If events were lost, the client has requested a snapshot, which follows.
    return applyOrSkip(state, event, event.cursor)
  }, from)
}
