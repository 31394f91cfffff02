/**
 * The fold of a task's log into its state. Every reader uses it, so all readers agree.
 *
 * A state is immutable and `applyEvent` is pure. It applies each cursor once. It ignores an event that cannot apply (a closed index, a skipped
 * index) and counts it in `discarded`. It throws for a delta that does not begin where its message ends (an event was lost: the reader must load
 * the log again from its cursor) or has another type. `applyOrSkip` never throws, so that one bad entry never breaks a reader.
 */

import type { Message, Turn } from '../entities/entities.ts'
import type { State } from '../entities/state.ts'
import { hasEnded } from '../entities/status/status.ts'
import type { OutcomeStatus, TaskStatus, TurnStatus } from '../entities/status/status-schema.ts'
import type { Wait } from '../entities/wait.ts'
import { RivuletError } from '../errors.ts'
import { type Cursor, compareCursors, origin } from '../events/cursor.ts'
import type { Event, EventOf, MessageEvent } from '../events/event.ts'
import { isMessageEvent } from '../events/message-event.ts'
import { DeltaAccumulator, timeOf } from './delta-accumulator.ts'
import { PersistentList } from './persistent-list.ts'
import { foldState, noState } from './state-fold.ts'

/** A turn as known from the log. Only a snapshot has its id and parameters. */
export type FoldedTurn = Omit<Turn, 'id' | 'task' | 'queuedAt'> & Partial<Pick<Turn, 'id' | 'queuedAt'>> & { firstIndex?: number }

export type TaskState = Readonly<{
  /** The last event applied. */
  cursor: Cursor
  status: TaskStatus
  /** Ascending by number. */
  turns: readonly FoldedTurn[]
  /** The messages from index `messagesFrom` on, without gaps. */
  messages: PersistentList<DeltaAccumulator>
  messagesFrom: number
  /** The state of the task; null while the log has not told it. */
  agentState: State | null
  /** How many events were ignored. */
  discarded: number
}>

export const emptyState: TaskState = {
  cursor: origin,
  status: 'queued',
  turns: [],
  messages: PersistentList.from([]),
  messagesFrom: 0,
  agentState: null,
  discarded: 0,
}

/** The state that a snapshot describes. Events after its cursor continue from it, even in the middle of a message. */
export function restoreState(
  cursor: Cursor,
  snapshot: { status: TaskStatus; turns: FoldedTurn[]; messages: Message[]; messagesFrom?: number; state?: State | null | undefined },
): TaskState {
  const messages = PersistentList.from(snapshot.messages.map(message => DeltaAccumulator.of(message)))
  const { status, turns, messagesFrom = snapshot.messages[0]?.index ?? 0, state: agentState = null } = snapshot
  return { cursor, status, turns, messages, messagesFrom, agentState, discarded: 0 }
}

export function applyEvent(state: TaskState, event: Event, cursor: Cursor): TaskState {
  if (compareCursors(cursor, state.cursor) <= 0) return state
  return isMessageEvent(event) ? changeMessage(state, event, cursor) : { ...change(state, event), cursor }
}

/** For readers that cannot load the log again: an event for which `applyEvent` throws is skipped, and counted like one that it ignores. */
export function applyOrSkip(state: TaskState, event: Event, cursor: Cursor, onSkipped: (error: unknown) => void = () => {}): TaskState {
  try {
    return applyEvent(state, event, cursor)
  } catch (error) {
    onSkipped(error)
    return { ...state, cursor, discarded: state.discarded + 1 }
  }
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

/** Whether every turn in the log has ended. False while there is no turn. */
export function isSettled(state: TaskState): boolean {
  return state.turns.length > 0 && state.turns.every(turn => hasEnded(turn.status))
}

/** The events that close the open messages, in index order. A worker that stops and a server that stops a turn use the same ones. */
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
    case 'turn.discarded':
      return discardTurns(state, event)
    case 'turn.joined':
      return joinTurn(state, event)
    case 'turn.waiting':
      return openWait(state, event)
    case 'turn.resumed':
      return closeWait(state, event)
    case 'state.changed':
      return { ...state, agentState: foldState(state.agentState, event) }
    case 'turn.finished':
      return finishTurn(state, event)
    case 'child.started':
    case 'child.finished':
    case 'custom':
      return state
    default:
      return event satisfies never
  }
}

function queueTurn(state: TaskState, event: EventOf<'turn.queued'>): TaskState {
  if (turnOf(state, event)) return state
  const { attempt, input, inputs, omitted, at } = event
  const told = { ...(input && { input }), ...(inputs && { inputs }), ...(omitted && { omitted }) }
  const queued = updateTurn(state, event, { status: 'queued', attempt, queuedAt: timeOf(at), ...told })
  return { ...queued, status: hasEnded(state.status) ? 'queued' : state.status }
}

function startTurn(state: TaskState, event: EventOf<'turn.started'>): TaskState {
  const { attempt, firstIndex, at } = event
  const inputs = startedInputs(event)
  const known = turnOf(state, event)
  const contents = ownInputs(state, event, inputs).map(({ content }) => content)
  const started = known?.startedAt ?? timeOf(at)
  const status = known?.waits?.some(wait => wait.status === 'open') ? 'waiting' : 'running'
  const turn = updateTurn(withoutJoins(state, event), event, {
    status,
    attempt,
    firstIndex,
    startedAt: started,
    ...(contents[0] && { input: contents[0] }),
    ...(contents.length > 1 && { inputs: contents }),
  })
  return { ...turn, ...startMessages(state, firstIndex, inputs), agentState: event.state ?? noState, status }
}

/** What has joined the turn since its start is offered to its new attempt again. A turn that runs by itself has joined none. */
function withoutJoins(state: TaskState, { turn: number, firstIndex }: EventOf<'turn.started'>): TaskState {
  const isLeft = (turn: FoldedTurn) =>
    turn.number === number || (turn.joinedTo === number && !hasEnded(turn.status) && (turn.joinIndex ?? firstIndex) >= firstIndex)
  if (!state.turns.some(turn => turn.joinedTo !== undefined && isLeft(turn))) return state
  const turns = state.turns.map((turn): FoldedTurn => {
    if (turn.joinedTo === undefined || !isLeft(turn)) return turn
    const { joinedTo: _, joinIndex: __, ...left } = turn
    return { ...left, status: 'queued' }
  })
  return { ...state, turns }
}

/** Without the inputs of turns that have joined it. */
function ownInputs(state: TaskState, { turn: number }: EventOf<'turn.started'>, inputs: readonly Message[]): readonly Message[] {
  const joined = state.turns.flatMap(({ joinedTo, joinIndex }) => (joinedTo === number && joinIndex !== undefined ? [joinIndex] : []))
  return inputs.filter(({ index }) => index < Math.min(...joined))
}

/** A turn that has joined one before them stays a part of it. */
function discardTurns(state: TaskState, { turn: number, from }: EventOf<'turn.discarded'>): TaskState {
  const isLeft = (turn: FoldedTurn) => turn.number >= from && turn.number < number && (turn.joinedTo ?? from) >= from
  return { ...state, turns: state.turns.map(turn => (isLeft(turn) ? { ...turn, status: 'discarded' } : turn)) }
}

function joinTurn(state: TaskState, event: EventOf<'turn.joined'>): TaskState {
  const known = turnOf(state, event)
  if (known && hasEnded(known.status)) return state
  return updateTurn(state, event, { status: 'running', joinedTo: event.into, joinIndex: event.index })
}

/** The messages that a turn starts with, in order. */
export function startedInputs({ input, inputs = input ? [input] : [] }: EventOf<'turn.started'>): readonly Message[] {
  return inputs
}

/** The fields of `turn.started` for the messages that a turn starts with. */
export function startingWith(inputs: readonly Message[]): Pick<EventOf<'turn.started'>, 'input' | 'inputs'> {
  const [input] = inputs
  return { ...(input && { input }), ...(inputs.length > 1 && { inputs: [...inputs] }) }
}

/** Drops the messages of an earlier attempt, then sets the inputs. A fold that starts with this event starts at the turn's first index. */
function startMessages(state: TaskState, firstIndex: number, inputs: readonly Message[]): Pick<TaskState, 'messages' | 'messagesFrom'> {
  const first = inputs[0]?.index ?? firstIndex
  const begins = state.messages.length === 0 || nextIndexOf(state) < first || first < state.messagesFrom
  const messagesFrom = begins ? first : state.messagesFrom
  const kept = begins ? PersistentList.from<DeltaAccumulator>([]) : state.messages.truncate(firstIndex - messagesFrom)
  const messages = inputs.reduce((list, input) => list.set(input.index - messagesFrom, DeltaAccumulator.of(input)), kept)
  return { messagesFrom, messages }
}

function openWait(state: TaskState, event: EventOf<'turn.waiting'>): TaskState {
  const { status, waits } = waitsOf(state, event)
  if (hasEnded(status) || waits.some(({ id }) => id === event.wait.id)) return state
  return { ...updateTurn(state, event, { status: 'waiting', waits: [...waits, event.wait] }), status: 'waiting' }
}

/** A turn goes on when its last open wait is closed. */
function closeWait(state: TaskState, { wait: id, status, answer, ...event }: EventOf<'turn.resumed'>): TaskState {
  const before = waitsOf(state, event)
  if (!before.waits.some(wait => wait.id === id && wait.status === 'open')) return state
  const waits = before.waits.map(wait => {
    if (wait.id !== id) return wait
    const { argumentsSchema: _, ...closed } = wait
    return { ...closed, status, ...(answer && { answer }) }
  })
  const isWaiting = waits.some(wait => wait.status === 'open')
  const next = isWaiting || before.status !== 'waiting' ? before.status : 'running'
  const changed = updateTurn(state, event, { waits, status: next })
  return next === 'running' ? { ...changed, status: 'running' } : changed
}

function waitsOf(state: TaskState, event: Pick<Event, 'turn'>): { status: TurnStatus; waits: readonly Wait[] } {
  const turn = turnOf(state, event)
  return { status: turn?.status ?? 'queued', waits: turn?.waits ?? [] }
}

function finishTurn(state: TaskState, event: EventOf<'turn.finished'>): TaskState {
  const { status, attempt, stopReason, usage, usageTotal, cost, error, at } = event
  const isDiscarded = turnOf(state, event)?.status === 'discarded'
  const used = { ...(usage && { usage }), ...(usageTotal && { usageTotal }), ...(cost !== undefined && { cost }) }
  const ended = { attempt, stopReason, finishedAt: timeOf(at), ...used, ...(error && { error }) }
  const outcome = { ...ended, status: isDiscarded ? ('discarded' as const) : status }
  const finished = updateTurn(state, event, outcome)
  // A queued turn can end while the turn before it is running.
  const open = finished.turns.map(turn => turn.status).find(isUnfinished)
  return { ...finished, status: open ?? status }
}

function isUnfinished(status: TurnStatus): status is Exclude<TaskStatus, OutcomeStatus> {
  return !hasEnded(status)
}

function turnOf(state: TaskState, { turn: number }: Pick<Event, 'turn'>): FoldedTurn | undefined {
  return state.turns.find(turn => turn.number === number)
}

function updateTurn(state: TaskState, event: Pick<Event, 'turn'>, fields: Partial<FoldedTurn>): TaskState {
  const { turn: number } = event
  const { omitted, ...known }: Partial<FoldedTurn> = turnOf(state, event) ?? {}
  // What a snapshot has left out may be told now.
  const missing = omitted?.filter(name => !(name in fields)) ?? []
  const left = missing.length > 0 ? { omitted: missing } : {}
  const updated: FoldedTurn = { ...{ number, status: 'queued', attempt: 0 }, ...known, ...left, ...fields }
  const others = state.turns.filter(turn => turn.number !== number)
  return { ...state, turns: [...others, updated].sort((a, b) => a.number - b.number) }
}

/** Handles every delta, so it is cheap: one new state and one new message; everything else is shared. */
function changeMessage(state: TaskState, event: MessageEvent, cursor: Cursor): TaskState {
  const { status, turns, messagesFrom, agentState } = state
  const before = messageAt(state, event.index)
  const after = before ? changeKnown(before, event) : openNew(state, event)
  const messages = after ? state.messages.set(event.index - messagesFrom, after) : state.messages
  return { cursor, status, turns, messages, messagesFrom, agentState, discarded: after ? state.discarded : state.discarded + 1 }
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
  if (expected !== offset)
    throw new RivuletError('offset_mismatch', `Message ${index} has length ${expected}, but its delta begins at ${offset}`)
  return accumulator.append(delta)
}
