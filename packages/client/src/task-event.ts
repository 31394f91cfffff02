/**
 * What a reader of a task is handed: the events of its log as they are, and three that only the wire has, each with its cursor.
 *
 * `snapshot` says "forget what you know, this is how it stands": what it stands for is not told one by one. `caught_up` comes once, when the past
 * has been told; `end` comes last.
 */
import {
  type Cursor,
  type Event,
  eventSchema,
  parseCursor,
  parseEvent,
  type Snapshot,
  type TokenEvent,
  tokenEventSchema,
  type WireEvent,
  wireEventSchema,
} from '@rivulet/protocol'

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
  try {
    const value: unknown = JSON.parse(data)
    const event = parseEvent(value) ?? wireEventSchema.safeParse(value).data ?? null
    return event === null && isOfKnownType(value) ? null : { cursor, event }
  } catch {
    return null
  }
}

const knownTypes = new Set<unknown>([...eventSchema.options, ...wireEventSchema.options].map(({ shape }) => shape.type.value))

function isOfKnownType(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && knownTypes.has(value.type)
}

/** Of the connection, not of the task: a reader is not handed it. */
export function parseTokenEvent(data: string): TokenEvent | null {
  try {
    return tokenEventSchema.safeParse(JSON.parse(data)).data ?? null
  } catch {
    return null
  }
}
