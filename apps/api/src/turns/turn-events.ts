/** The server's own entries in a task's log, made from committed rows. Their keys ensure that each is written once. */
import {
  type Content,
  type Event,
  type EventOf,
  hasEnded,
  type Message,
  maxQueuedInputBytes,
  messageEvents,
  type State,
  startingWith,
  type TaskId,
} from '@rivulet/protocol'
import type { ChildRow } from '../store/children/child-ends.ts'
import { type TurnRow, toMessage } from '../store/rows.ts'
import type { StateAround } from '../store/states/task-state.ts'
import type { Claimed } from '../store/turns/claimed.ts'

export type KeyedEvent = { key: string; event: Exclude<Event, EventOf<'message.delta' | 'message.replaced' | 'custom'>> }

/** That a turn is queued, and before it which turns were discarded for it. */
export function queuedEvents(turn: TurnRow): KeyedEvent[] {
  const { task, number, queuedAt, discardsFrom: from } = turn
  const common = { task, turn: number, attempt: 0, at: queuedAt.getTime() }
  const queued: KeyedEvent = { key: `queued:${number}`, event: { type: 'turn.queued', ...common, ...inputOf(turn) } }
  return from === null ? [queued] : [{ key: `discarded:${number}`, event: { type: 'turn.discarded', ...common, from } }, queued]
}

function inputOf({ input, inputs, hasLargeInput }: TurnRow): { input?: Content; inputs?: Content[]; omitted?: string[] } {
  if (input === null) return hasLargeInput ? { omitted: ['input'] } : {}
  if (Buffer.byteLength(JSON.stringify(inputs ?? input)) > maxQueuedInputBytes) return { omitted: ['input'] }
  return { input, ...(inputs && { inputs }) }
}

type StartedTurn = Pick<Claimed['turn'], 'task' | 'number' | 'attempt' | 'firstIndex' | 'epoch'>

/** @param state what the turn begins with */
export function startedEvent(turn: StartedTurn, inputs: readonly Message[], state: State | null): KeyedEvent {
  const { task, number, attempt, firstIndex, epoch } = turn
  const common = { task, turn: number, attempt, at: Date.now() }
  const told = { ...startingWith(inputs), ...(state && { state }) }
  return { key: `started:${epoch}`, event: { type: 'turn.started', ...common, firstIndex, ...told } }
}

/**
 * What a claim writes at its beginning to a log that goes on. An attempt that follows a park keeps what the park has stored; a claim that resumes the
 * same attempt begins nothing.
 */
export function beginningOf({ turn, inputs, joined, state, keptState }: Claimed): KeyedEvent[] {
  const waits = waitEvents(turn)
  if (turn.resumed === 'claimed') return waits
  if (turn.keptTo !== null)
    return [startedEvent({ ...turn, firstIndex: turn.keptTo }, [], state), ...keptStateEvents(turn, keptState), ...waits]
  return [...joined.flatMap(joinedEvents), startedEvent(turn, inputs.map(toMessage), state), ...waits]
}

/** That a turn has become a part of another one, once its messages are stored. */
export function joinedEvents({ task, number, attempt, joinedTo: into, joinIndex: index, queuedAt }: TurnRow): KeyedEvent[] {
  if (into === null || index === null) return []
  return [{ key: `joined:${number}`, event: { type: 'turn.joined', task, turn: number, attempt, at: queuedAt.getTime(), into, index } }]
}

/** The same for a log that was opened anew: with the messages that are stored, the input among them. */
export function retoldBeginning(turn: StartedTurn, stored: readonly Message[], { state, keptState }: StateAround): KeyedEvent[] {
  const inputs = stored.filter(({ index }) => index < turn.firstIndex)
  const kept = stored.filter(({ index }) => index >= turn.firstIndex)
  const entries = kept.flatMap(message => messageEvents(message))
  const told = entries.map(event => ({ key: `kept:${turn.epoch}:${event.index}:${event.type}`, event }))
  return [startedEvent(turn, inputs, state), ...told, ...keptStateEvents(turn, keptState)]
}

/** The state as the turn had made it when it parked. */
function keptStateEvents({ task, number, attempt, epoch }: StartedTurn, keptState: State | null): KeyedEvent[] {
  if (!keptState) return []
  return [{ key: `kept:${epoch}:state`, event: { type: 'state.changed', task, turn: number, attempt, at: Date.now(), ...keptState } }]
}

/** That a turn has a child, and that the child has ended. They may come after the end of the turn. */
export function childEvents({ parent: task, number, child, name, callId, status }: ChildRow): KeyedEvent[] {
  const common = { task, turn: number, attempt: 0, at: Date.now(), child }
  const started: KeyedEvent = {
    key: `child:${number}:${child}:started`,
    event: { type: 'child.started', ...common, name, ...(callId !== null && { callId }) },
  }
  return status === null
    ? [started]
    : [started, { key: `child:${number}:${child}:finished`, event: { type: 'child.finished', ...common, status } }]
}

/** A change of the state between two turns: it belongs to the turn before it. */
export function stateEvent(task: TaskId, { turn: number, version, value }: State & { turn: number }): KeyedEvent {
  const common = { task, turn: Math.max(1, number), attempt: 0, at: Date.now() }
  return { key: `state:${version}`, event: { type: 'state.changed', ...common, version, value } }
}

/** One for each wait that opened, and one for each that closed. */
export function waitEvents({ task, number, attempt, waits }: TurnRow): KeyedEvent[] {
  const lastOpen = waits?.findLast(({ status }) => status === 'open')
  return (waits ?? []).flatMap((wait): KeyedEvent[] => {
    const { id, status, answer } = wait
    const stamp = { task, turn: number, attempt }
    const { answer: _, ...asked } = wait
    const at = Date.parse(wait.createdAt)
    const more = status === 'open' && wait !== lastOpen ? ({ more: true } as const) : {}
    const opened = { type: 'turn.waiting', ...stamp, at, wait: { ...asked, status: 'open' }, ...more } as const
    const waiting: KeyedEvent = { key: `waiting:${number}:${id}`, event: opened }
    if (status === 'open') return [waiting]
    const closedAt = answer ? Date.parse(answer.at) : Date.now()
    const closed = { type: 'turn.resumed', ...stamp, at: closedAt, wait: id, status, ...(answer && { answer }) } as const
    return [waiting, { key: `resumed:${number}:${id}`, event: closed }]
  })
}

export function finishedEvent(turn: TurnRow): KeyedEvent {
  const { task, number, attempt, status, stopReason, usage, usageTotal, cost, error, finishedAt } = turn
  if (!hasEnded(status)) throw new Error(`Turn ${turn.id} is ${status}: it has not ended`)
  const common = { task, turn: number, attempt, at: (finishedAt ?? new Date()).getTime() }
  const used = { ...(usage && { usage }), ...(usageTotal && { usageTotal }), ...(cost !== null && { cost }) }
  const outcome = { status, stopReason: stopReason ?? 'other', ...used, ...(error && { error }) }
  return { key: `finished:${number}`, event: { type: 'turn.finished', ...common, ...outcome } }
}

export function closingEvent(turn: TurnRow, event: EventOf<'message.finished'>): KeyedEvent {
  return { key: `closed:${turn.number}:${turn.attempt}:${event.index}`, event }
}

/** The end of a message as it was committed. */
export function storedClosing(turn: TurnRow, message: Message): KeyedEvent {
  const { task, index, status, stopReason, usage, response, error, finishedAt } = message
  if (status === 'streaming' || !finishedAt) throw new Error(`Message ${index} of ${task} is stored while it streams`)
  const common = { task, turn: turn.number, attempt: turn.attempt, at: Date.parse(finishedAt) }
  const how = { status, ...(stopReason && { stopReason }), ...(usage && { usage }), ...(response && { response }), ...(error && { error }) }
  return closingEvent(turn, { type: 'message.finished', ...common, index, ...how })
}
