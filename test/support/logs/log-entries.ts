/** The log of one task as a list of entries: its fold, its snapshots, and what a narrator or a dialect makes of it. */
import { applyEvent, type Cursor, type Event, emptyState, formatCursor, messagesOf, type Snapshot, type TaskState } from '@rivulet/protocol'

export const task = '0198c0de-0000-7000-8000-000000000001'

export type Entry = { cursor: Cursor; event: Event }

type Taker<Chunk> = { take(cursor: Cursor, event: Event): Chunk[] }

/** @param first how many entries come before these */
export function logOf(events: readonly Event[], first = 0): Entry[] {
  return events.map((event, place) => ({ cursor: formatCursor(1, first + place + 1), event }))
}

export function stateOf(log: readonly Entry[]): TaskState {
  return log.reduce((state, { cursor, event }) => applyEvent(state, event, cursor), emptyState)
}

export function snapshotOf(log: readonly Entry[], reason: Snapshot['reason']): Snapshot {
  const state = stateOf(log)
  const at = new Date(1).toISOString()
  const turns = state.turns.map(({ firstIndex: _, ...turn }) => ({ queuedAt: at, ...turn, id: task, task }))
  const entity = { id: task, agent: 'a', status: state.status, params: null, metadata: {}, createdAt: at, updatedAt: at }
  return {
    type: 'snapshot',
    reason,
    task: entity,
    turns,
    messages: messagesOf(state),
    messagesFrom: 0,
    ...(state.agentState?.version && { state: state.agentState }),
  }
}

/** The chunks that a stream returns for these entries. */
export function take<Chunk extends object>(stream: Taker<Chunk>, log: readonly Entry[]): Chunk[] {
  return log.flatMap(({ cursor, event }) => stream.take(cursor, event))
}

/** The chunks as on the wire: the last chunk of an event has its cursor. */
export function framesOf<Chunk extends object>(stream: Taker<Chunk>, log: readonly Entry[]): { id: Cursor | null; chunk: Chunk }[] {
  return log.flatMap(({ cursor, event }) => {
    const chunks = stream.take(cursor, event)
    return chunks.map((chunk, place) => ({ id: place === chunks.length - 1 ? cursor : null, chunk }))
  })
}

/** The entries that a client has which resumes. */
export async function* replay(log: readonly Entry[]): AsyncGenerator<Entry> {
  yield* log
}

/** The cursor of a client that has this many entries. */
export function cursorOf(log: readonly Entry[], place: number): Cursor {
  return log[place - 1]?.cursor ?? '0-0'
}
