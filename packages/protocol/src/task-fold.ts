/**
 * The fold of a task's log: what every reader makes of the same events.
 *
 * A state is a value. `applyEvent` is pure, applies each cursor once, and passes over what cannot belong there (a closed index, a hole),
 * counting it in `discarded`, so that one bad entry never breaks a reader. The one thing it refuses is a delta that does not begin where its
 * message ends: then something was lost, and the reader has to ask again.
 */
import { type Cursor, compareCursors, origin } from './cursor.ts'
import { DeltaAccumulator, timeOf } from './delta-accumulator.ts'
import type { Message, Turn } from './entities.ts'
import { RivuletError } from './errors.ts'
import { type Event, type EventOf, isMessageEvent, type MessageEvent } from './event.ts'
import { PersistentList } from './persistent-list.ts'
import { hasEnded, type TaskStatus } from './status.ts'

/** A turn as the log tells it; its id and parameters are known only from a snapshot. */
export type FoldedTurn = Omit<Turn, 'id' | 'task' | 'queuedAt'> & Partial<Pick<Turn, 'id' | 'queuedAt'>> & { firstIndex?: number }

export type TaskState = Readonly<{
  /** The last event applied. */
  cursor: Cursor
  status: TaskStatus
  /** Ascending by number. */
  turns: readonly FoldedTurn[]
  /** From `messagesFrom` on, without holes. */
  messages: PersistentList<DeltaAccumulator>
  messagesFrom: number
  /** Events that were passed over. */
  discarded: number
}>

export const emptyState: TaskState = {
  cursor: origin,
  status: 'queued',
  turns: [],
  messages: PersistentList.from([]),
  messagesFrom: 0,
  discarded: 0,
}

/** The state that a snapshot describes; events after its cursor go on from there, also within half a message. */
export function restoreState(
  cursor: Cursor,
  snapshot: { status: TaskStatus; turns: FoldedTurn[]; messages: Message[]; messagesFrom?: number },
): TaskState {
  const messages = PersistentList.from(snapshot.messages.map(message => DeltaAccumulator.of(message)))
  const { status, turns, messagesFrom = snapshot.messages[0]?.index ?? 0 } = snapshot
  return { cursor, status, turns, messages, messagesFrom, discarded: 0 }
}

export function applyEvent(state: TaskState, event: Event, cursor: Cursor): TaskState {
  if (compareCursors(cursor, state.cursor) <= 0) return state
  return isMessageEvent(event) ? changeMessage(state, event, cursor) : { ...change(state, event), cursor }
}

export function messagesOf(state: TaskState): Message[] {
  return Array.from(state.messages, accumulator => accumulator.message)
}

export function messageAt(state: TaskState, index: number): DeltaAccumulator | undefined {
  return state.messages.get(index - state.messagesFrom)
}

/** The index that the next new message gets. */
export function nextIndexOf(state: TaskState): number {
  return state.messagesFrom + state.messages.length
}

/** Whether nothing is left to come: every turn that the log knows of has ended. */
export function isSettled(state: TaskState): boolean {
  return state.turns.length > 0 && state.turns.every(turn => hasEnded(turn.status))
}

/** What ends the messages that are still open, in index order: the same for a worker that stops and for a server that stops it. */
export function closingEvents(
  state: TaskState,
  how: Pick<EventOf<'message.finished'>, 'task' | 'turn' | 'attempt' | 'at' | 'status' | 'error'>,
): EventOf<'message.finished'>[] {
  const stop = how.status === 'aborted' ? ({ stopReason: 'aborted' } as const) : {}
  const open = messagesOf(state).filter(message => message.status === 'streaming')
  return open.map(({ index }) => ({ type: 'message.finished', ...how, ...stop, index }))
}

function change(state: TaskState, event: Exclude<Event, MessageEvent>): TaskState {
  switch (event.type) {
    case 'turn.queued':
      return queueTurn(state, event)
    case 'turn.started':
      return startTurn(state, event)
    case 'turn.waiting':
      return { ...updateTurn(state, event, { status: 'waiting' }), status: 'waiting' }
    case 'turn.resumed':
      return { ...updateTurn(state, event, { status: 'running' }), status: 'running' }
    case 'turn.finished':
      return finishTurn(state, event)
    case 'custom':
      return state
    default:
      return event satisfies never
  }
}

function queueTurn(state: TaskState, event: EventOf<'turn.queued'>): TaskState {
  if (state.turns.some(turn => turn.number === event.turn)) return state
  const { attempt, input, at } = event
  const queued = updateTurn(state, event, { status: 'queued', attempt, queuedAt: timeOf(at), ...(input && { input }) })
  return { ...queued, status: hasEnded(state.status) ? 'queued' : state.status }
}

function startTurn(state: TaskState, event: EventOf<'turn.started'>): TaskState {
  const { attempt, firstIndex, input, at } = event
  const started = state.turns.find(turn => turn.number === event.turn)?.startedAt ?? timeOf(at)
  const turn = updateTurn(state, event, {
    status: 'running',
    attempt,
    firstIndex,
    startedAt: started,
    ...(input && { input: input.content }),
  })
  return { ...turn, ...startMessages(state, firstIndex, input), status: 'running' }
}

/** Drops what an earlier attempt wrote, then sets the input. A fold that begins here begins at the turn's first index. */
function startMessages(state: TaskState, firstIndex: number, input: Message | undefined): Pick<TaskState, 'messages' | 'messagesFrom'> {
  const first = input?.index ?? firstIndex
  const begins = state.messages.length === 0 || nextIndexOf(state) < first || first < state.messagesFrom
  const messagesFrom = begins ? first : state.messagesFrom
  const kept = begins ? PersistentList.from<DeltaAccumulator>([]) : state.messages.truncate(firstIndex - messagesFrom)
  return { messagesFrom, messages: input ? kept.set(input.index - messagesFrom, DeltaAccumulator.of(input)) : kept }
}

function finishTurn(state: TaskState, event: EventOf<'turn.finished'>): TaskState {
  const { status, attempt, stopReason, usage, error, at } = event
  const outcome = { status, attempt, stopReason, finishedAt: timeOf(at), ...(usage && { usage }), ...(error && { error }) }
  const finished = updateTurn(state, event, outcome)
  // A queued turn can end, by its deadline, while the one before it runs.
  return { ...finished, status: finished.turns.find(turn => !hasEnded(turn.status))?.status ?? status }
}

function updateTurn(state: TaskState, { turn: number }: Event, fields: Partial<FoldedTurn>): TaskState {
  const known = state.turns.find(turn => turn.number === number)
  const updated: FoldedTurn = { number, status: 'queued', attempt: 0, ...known, ...fields }
  const others = state.turns.filter(turn => turn.number !== number)
  return { ...state, turns: [...others, updated].sort((a, b) => a.number - b.number) }
}

/** The path of every delta: one new state, one new message, everything else shared. */
function changeMessage(state: TaskState, event: MessageEvent, cursor: Cursor): TaskState {
  const { status, turns, messagesFrom } = state
  const before = messageAt(state, event.index)
  const after = before ? changeKnown(before, event) : openNew(state, event)
  const messages = after ? state.messages.set(event.index - messagesFrom, after) : state.messages
  return { cursor, status, turns, messages, messagesFrom, discarded: after ? state.discarded : state.discarded + 1 }
}

function openNew(state: TaskState, event: MessageEvent): DeltaAccumulator | null {
  if (event.index !== nextIndexOf(state)) return null
  if (event.type === 'message.started') return DeltaAccumulator.started(event)
  return event.type === 'message.replaced' ? DeltaAccumulator.replaced(event) : null
}

function changeKnown(accumulator: DeltaAccumulator, event: MessageEvent): DeltaAccumulator | null {
  if (!accumulator.isOpen) return null
  switch (event.type) {
    case 'message.started':
      return null
    case 'message.replaced':
      return accumulator.replace(event)
    case 'message.finished':
      return accumulator.finish(event)
    case 'message.delta':
      return appendDelta(accumulator, event)
    default:
      return event satisfies never
  }
}

function appendDelta(accumulator: DeltaAccumulator, { delta, offset, index }: EventOf<'message.delta'>): DeltaAccumulator | null {
  let expected: number
  try {
    expected = accumulator.offsetOf(delta)
  } catch {
    return null
  }
  if (expected !== offset) throw new RivuletError('offset_mismatch', `Message ${index} has ${expected} where its delta begins at ${offset}`)
  return accumulator.append(delta)
}
