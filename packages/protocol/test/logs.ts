/** Logs for tests: events with their cursors, made by a composer or by hand, and the ways in which readers load them. */
import {
  applyEvent,
  type Cursor,
  createTurnComposer,
  type Event,
  type EventType,
  emptyState,
  formatCursor,
  type Message,
  messageSchema,
  messagesOf,
  parseEvent,
  restoreState,
  type TaskState,
  type TurnComposer,
  type Update,
} from '../src/index.ts'

export type Entry = { cursor: Cursor; event: Event }

export const task = '0198c0de-0000-7000-8000-000000000001'
export const firstTurn = { task, turn: 1, attempt: 1, firstIndex: 0 }
/** The fields of every event of the first turn. */
export const stamp = { task, turn: 1, attempt: 1, at: 1_700_000_000_000 }

/** Entries of one epoch, numbered from 1. */
export function logOf(events: readonly Event[], epoch = 1): Entry[] {
  return events.map((event, i) => ({ cursor: formatCursor(epoch, i + 1), event }))
}

export function fold(log: readonly Entry[], from: TaskState = emptyState): TaskState {
  return log.reduce((state, { event, cursor }) => applyEvent(state, event, cursor), from)
}

/** The state before the first entry, and after each. */
export function statesOf(log: readonly Entry[]): TaskState[] {
  const states = [emptyState]
  let state = emptyState
  for (const { event, cursor } of log) {
    state = applyEvent(state, event, cursor)
    states.push(state)
  }
  return states
}

/** The messages that a reader folds from these events after a trip through JSON. */
export function messagesFrom(events: readonly Event[]): Message[] {
  return messagesOf(fold(overTheWire(logOf(events))))
}

export function overTheWire(log: readonly Entry[]): Entry[] {
  return log.map(({ cursor, event }) => ({ cursor, event: received(JSON.parse(JSON.stringify(event))) }))
}

function received(value: unknown): Event {
  const event = parseEvent(value)
  if (!event) throw new Error(`parseEvent rejected ${JSON.stringify(value)}`)
  return event
}

/** The state of a reader that joins here and has only a snapshot. */
export function joined(state: TaskState): TaskState {
  const { status, turns, messagesFrom, agentState } = state
  const messages = messagesOf(state).map(message => messageSchema.parse(JSON.parse(JSON.stringify(message))))
  return restoreState(state.cursor, { status, turns: JSON.parse(JSON.stringify(turns)), messages, messagesFrom, state: agentState })
}

type Composition = { composer: TurnComposer; events: Event[]; messages: Message[] }

/** The events of a turn's updates. `messages` is a reader's fold of the events, not the composer's own. */
export function composed(...updates: Update[]): Composition {
  const composer = createTurnComposer(firstTurn)
  const events = updates.flatMap(update => composer.compose(update))
  return { composer, events, messages: messagesFrom(events) }
}

export function typesOf(events: readonly Event[]): EventType[] {
  return events.map(event => event.type)
}

/** The fields of messages that must be equal wherever they were folded. */
export function withoutTimes(messages: readonly Message[]): Omit<Message, 'createdAt' | 'finishedAt'>[] {
  return messages.map(({ createdAt: _, finishedAt: __, ...message }) => message)
}

/** Everything that a reader can see of the state, for comparison. The order of keys in contents must agree too. */
export function seenOf(state: TaskState): string {
  const { cursor, status, turns, messagesFrom, discarded } = state
  const messages = Array.from(state.messages, ({ message }) => messageFields.map(field => message[field] ?? null))
  return JSON.stringify({ cursor, status, turns, messagesFrom, discarded, messages })
}

const messageFields = Object.keys(messageSchema.shape) as (keyof Message)[]
