/** The server's own entries in a task's log, made from committed rows. Their keys ensure that each is written once. */
import { type Content, type EventOf, hasEnded, type Message, maxQueuedInputBytes } from '@rivulet/protocol'
import { type TurnRow, toMessage } from '../store/rows.ts'
import type { Claimed } from '../store/turns/claimed.ts'

export type KeyedEvent = { key: string; event: EventOf<'turn.queued' | 'turn.started' | 'turn.finished' | 'message.finished'> }

export function queuedEvent(turn: TurnRow): KeyedEvent {
  const { task, number, queuedAt } = turn
  const common = { task, turn: number, attempt: 0, at: queuedAt.getTime() }
  return { key: `queued:${number}`, event: { type: 'turn.queued', ...common, ...inputOf(turn) } }
}

function inputOf({ input, hasLargeInput }: TurnRow): { input?: Content; omitted?: string[] } {
  if (input === null) return hasLargeInput ? { omitted: ['input'] } : {}
  return Buffer.byteLength(JSON.stringify(input)) <= maxQueuedInputBytes ? { input } : { omitted: ['input'] }
}

export function startedEvent({ turn, input }: Claimed): KeyedEvent {
  const { task, number, attempt, firstIndex, epoch } = turn
  const common = { task, turn: number, attempt, at: Date.now() }
  return { key: `started:${epoch}`, event: { type: 'turn.started', ...common, firstIndex, ...(input && { input: toMessage(input) }) } }
}

export function finishedEvent(turn: TurnRow): KeyedEvent {
  const { task, number, attempt, status, stopReason, usage, error, finishedAt } = turn
  if (!hasEnded(status)) throw new Error(`Turn ${turn.id} is ${status}: it has not ended`)
  const common = { task, turn: number, attempt, at: (finishedAt ?? new Date()).getTime() }
  const outcome = { status, stopReason: stopReason ?? 'other', ...(usage && { usage }), ...(error && { error }) }
  return { key: `finished:${number}`, event: { type: 'turn.finished', ...common, ...outcome } }
}

export function closingEvent(turn: TurnRow, event: EventOf<'message.finished'>): KeyedEvent {
  return { key: `closed:${turn.number}:${turn.attempt}:${event.index}`, event }
}

/** The end of a message as it was committed. */
export function storedClosing(turn: TurnRow, message: Message): KeyedEvent {
  const { task, index, status, stopReason, usage, error, finishedAt } = message
  if (status === 'streaming' || !finishedAt) throw new Error(`Message ${index} of ${task} is stored while it streams`)
  const common = { task, turn: turn.number, attempt: turn.attempt, at: Date.parse(finishedAt) }
  const how = { status, ...(stopReason && { stopReason }), ...(usage && { usage }), ...(error && { error }) }
  return closingEvent(turn, { type: 'message.finished', ...common, index, ...how })
}
