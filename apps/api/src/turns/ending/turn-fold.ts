/** What the log of a turn amounts to when the turn ends or parks: its messages, the turns that have joined it, and the state of its task. */
import type { LogReader } from '@rivulet/broker'
import {
  applyEvent,
  closingEvents,
  closingStatus,
  epochOf,
  formatCursor,
  type Message,
  messagesOf,
  seqOf,
  type TaskState,
} from '@rivulet/protocol'
import { foldFrom } from '../../log/log-fold.ts'
import type { TurnRow } from '../../store/rows.ts'
import type { Outcome } from '../../store/turns/end-turn.ts'
import type { TurnEnd } from '../../store/turns/finish-turn.ts'
import type { Joins } from '../../store/turns/join-turns.ts'
import { closingEvent, type KeyedEvent } from '../turn-events.ts'

/** `misplaced`: the index of the first output that cannot be stored. */
export type WholeFold = { state: TaskState; misplaced: number | null }

/** What a worker has emitted under its epoch. Null when the log does not have all that it appended. */
export async function foldWhole(
  reader: LogReader,
  { task, keptTo }: Pick<TurnRow, 'task' | 'keptTo'>,
  { epoch, appended }: { epoch: number; appended: number },
): Promise<WholeFold | null> {
  const { state, isWhole, misplaced } = await foldFrom(reader, task, epoch, keptTo)
  // Asked after the fold: a log that was lost before or meanwhile, and looked like one that says nothing, shows now.
  const log = await reader.state(task)
  const isShort = !log || log.isStale || log.epoch < epoch || (log.epoch === epoch && log.number < appended)
  return isWhole && !isShort ? { state, misplaced } : null
}

/** Closes what the turn has left open. */
export function closeTurn(state: TaskState, turn: TurnRow, outcome: Outcome): { state: TaskState; events: KeyedEvent[] } {
  const { error } = outcome
  const common = { task: turn.task, turn: turn.number, attempt: turn.attempt, at: Date.now() }
  const how = { ...common, status: closingStatus(outcome), ...(error && { error }) }
  const events = closingEvents(state, how)
  const closed = events.reduce(
    (before, event) => applyEvent(before, event, formatCursor(epochOf(before.cursor), seqOf(before.cursor) + 1)),
    state,
  )
  return { state: closed, events: events.map(event => closingEvent(turn, event)) }
}

/** The inputs are stored since the first claim, and what a park has kept since then. */
export function newMessages(state: TaskState, { firstIndex, keptTo }: Pick<TurnRow, 'firstIndex' | 'keptTo'>): Message[] {
  return messagesOf(state).filter(({ index }) => index >= (keptTo ?? firstIndex ?? 0))
}

export function joinsAndState(state: TaskState, turn: TurnRow): Pick<TurnEnd, 'joins' | 'state'> {
  return { joins: joinsIn(state, turn), state: state.agentState }
}

/** The turns whose inputs are among the messages of this one. */
export function joinsIn(state: TaskState, { number }: Pick<TurnRow, 'number'>): Joins {
  return new Map(
    state.turns.flatMap(turn => (turn.joinedTo === number && turn.joinIndex !== undefined ? [[turn.number, turn.joinIndex]] : [])),
  )
}
