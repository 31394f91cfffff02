/**
 * The events that a reader of a task receives: those of its log, and three that only the wire has, each with its cursor.
 *
 * `snapshot` replaces the reader's state; the events that it summarises are not sent. `caught_up` is sent once, after all past events; `end` is
 * the last.
 */
import { type Cursor, type Event, isObject, parseCursor, type Snapshot, type TokenEvent, type WireEvent } from '@rivulet/protocol'
import { readEvent } from '../http/shapes.ts'

export type LoggedEvent = Event & { cursor: Cursor }
export type SnapshotEvent = Snapshot & { cursor: Cursor }
/** Without `deleted`: that the task was deleted is an error for its reader. */
export type TaskEvent = LoggedEvent | (Exclude<WireEvent, { type: 'deleted' }> & { cursor: Cursor })

/** Whether an event stands in the task's log. */
export function isLogged(event: TaskEvent): event is LoggedEvent {
  return event.type !== 'snapshot' && event.type !== 'caught_up' && event.type !== 'end'
}

/**
 * What a frame says. `event` is null for a type that this version does not know; the whole is null for what is no frame at all, or says
 * something of a known type that cannot be read: to pass that over would be to lose it.
 */
export function parseFrame(id: string | undefined, data: string): { cursor: Cursor; event: Event | WireEvent | null } | null {
  const cursor = parseCursor(id ?? '')
  if (cursor === null) return null
  const event = readEvent(parseJson(data))
  return event === 'malformed' ? null : { cursor, event }
}

/** Of the connection, not of the task: a reader is not handed it. */
export function parseTokenEvent(data: string): TokenEvent | null {
  const value = parseJson(data)
  return isObject(value) && typeof value.token === 'string' ? (value as unknown as TokenEvent) : null
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
