/**
 * A reader's position in a task, and the effect of the next frame on it. Pure.
 *
 * The cursor is the point to resume from. The state is the protocol's fold of the received events, kept to detect a delta that does not begin
 * where its message ends. Events at or before the cursor are dropped as repeated. An event that does not follow the cursor reveals a loss, even
 * one that no offset shows, such as a message's last delta. A snapshot replaces the position, wherever it is.
 */
import {
  applyEvent,
  type Cursor,
  compareCursors,
  type Event,
  emptyState,
  epochOf,
  hasEnded,
  type Message,
  messageAt,
  nextIndexOf,
  noState,
  origin,
  RivuletError,
  restoreState,
  type Snapshot,
  seqOf,
  type TaskState,
} from '@rivulet/protocol'
import { isSameJson } from './same-json.ts'
import { parseFrame, type TaskEvent } from './task-event.ts'

export type Place = Readonly<{
  /** Null before anything was heard. */
  cursor: Cursor | null
  state: TaskState
  /** False for a reader that began in the middle: it cannot know the messages that were open then. */
  isWhole: boolean
}>

export const nowhere: Place = { cursor: null, state: emptyState, isWhole: true }

export function placeAfter(cursor: Cursor): Place {
  return { cursor, state: { ...emptyState, cursor }, isWhole: cursor === origin }
}

/** The same place for a reader that needs no past: what has ended cannot change, and would be held for nothing. */
export function withoutEnded(place: Place): Place {
  const { state } = place
  const isUnderWay = state.turns.some(({ status }) => !hasEnded(status) && status !== 'queued')
  if (isUnderWay) return place
  const last = state.turns.at(-1)
  const turns = state.turns.filter(turn => turn === last || !hasEnded(turn.status))
  return { ...place, state: { ...state, turns, messages: emptyState.messages, messagesFrom: nextIndexOf(state) } }
}

/**
 * What a frame tells, null where that is nothing new, and the place after it. Throws `offset_mismatch` when something was lost before it, and
 * `task_not_found` when the task was deleted.
 */
export function hear(place: Place, frame: { id?: string | undefined; data: string }): { place: Place; event: TaskEvent | null } {
  const parsed = parseFrame(frame.id, frame.data)
  if (!parsed) throw lost('Malformed SSE frame')
  const { cursor, event } = parsed
  if (event?.type === 'snapshot') return { place: restored(place, cursor, event), event: { ...event, cursor } }
  if (event?.type === 'deleted') throw taskDeleted()
  if (event?.type === 'end' || event?.type === 'caught_up') return { place: after(place, cursor), event: { ...event, cursor } }
  if (place.cursor !== null && compareCursors(cursor, place.cursor) <= 0) return { place, event: null }
  if (!isNext(place.cursor ?? origin, cursor)) throw lost(`${cursor} does not follow ${place.cursor ?? 'the beginning'}`)
  if (event === null) return { place: { ...place, cursor }, event: null }
  return { place: { ...place, cursor, state: fold(place, event, cursor) }, event: { ...event, cursor } }
}

function fold({ state, isWhole }: Place, event: Event, cursor: Cursor): TaskState {
  const next = applyEvent(isWhole ? state : beginAt(state, event), event, cursor)
  if (isWhole && next.discarded > state.discarded) throw lost(`${event.type} ${cursor} has no place: what came before it was lost`)
  return next
}

/** A reader that began in the middle has the messages from the first one whose start it received. */
function beginAt(state: TaskState, event: Event): TaskState {
  return event.type === 'message.started' && state.messages.length === 0 ? { ...state, messagesFrom: event.index } : state
}

function restored(place: Place, cursor: Cursor, { task, turns, messages, messagesFrom, state: told }: Snapshot): Place {
  const kept = messages.map(message => known(place.state, message))
  const state = restoreState(cursor, { status: task.status, turns, messages: kept, messagesFrom, state: told ?? noState })
  return { cursor, state, isWhole: true }
}

/** The object that a reader already holds, if it says the same: what has not changed keeps its identity. */
function known(state: TaskState, message: Message): Message {
  const before = messageAt(state, message.index)?.message
  return before && isSameJson(before, message) ? before : message
}

/** A log counts from 1 in each of its epochs. Between two epochs nothing tells how far the earlier one went. */
function isNext(before: Cursor, cursor: Cursor): boolean {
  return seqOf(cursor) === (epochOf(cursor) === epochOf(before) ? seqOf(before) + 1 : 1)
}

/** How far the server says that it has told. A reader that has not heard as much has lost something; one that has heard more is not taken back. */
function after(place: Place, cursor: Cursor): Place {
  const heard = place.cursor ?? origin
  if (compareCursors(cursor, heard) > 0) throw lost(`The server is at ${cursor}, but the client at ${heard}`)
  return { ...place, cursor: heard }
}

export function taskDeleted(): RivuletError {
  return new RivuletError('task_not_found', 'The task was deleted')
}

function lost(message: string): RivuletError {
  return new RivuletError('offset_mismatch', message)
}
