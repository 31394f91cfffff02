/** Logs of tasks for the tests of views, written as a worker and a server write them. */
import { createTurnComposer, type Event, type MessageStatus, type OutcomeStatus, type StopReason, type Update } from '@rivulet/protocol'

export const task = '0198c0de-0000-7000-8000-000000000001'
const at = 1_700_000_000_000

/** The message events of an agent's updates in its first turn, without turn events. */
export function updatesToEvents(...updates: Update[]): Event[] {
  return attemptOf(1, 1, 0, updates).events
}

type TurnScript = {
  turnNumber?: number
  attempt?: number
  firstIndex?: number
  updates?: Update[]
  /** How the turn ends. Without it, the turn is still running and its open messages stay open. */
  end?: { status: OutcomeStatus; stopReason: StopReason; error?: { code: string; message: string } }
}

/** A turn from its start to its end. */
export function turnOf({ turnNumber = 1, attempt = 1, firstIndex = 0, updates = [], end }: TurnScript): Event[] {
  const { events, composer } = attemptOf(turnNumber, attempt, firstIndex, updates)
  const started: Event = { type: 'turn.started', ...stamp(turnNumber, attempt), firstIndex }
  if (!end) return [started, ...events]
  const closing = { completed: 'complete', canceled: 'aborted', failed: 'failed' } as const satisfies Record<OutcomeStatus, MessageStatus>
  const closed = composer.closeAll(closing[end.status], end.error)
  return [started, ...events, ...closed, { type: 'turn.finished', ...stamp(turnNumber, attempt), ...end }]
}

export function queued(turnNumber: number): Event {
  return { type: 'turn.queued', ...stamp(turnNumber, 0) }
}

function stamp(turnNumber: number, attempt: number) {
  return { task, turn: turnNumber, attempt, at }
}

function attemptOf(turnNumber: number, attempt: number, firstIndex: number, updates: Update[]) {
  const composer = createTurnComposer({ task, turn: turnNumber, attempt, firstIndex }, { now: () => at })
  return { composer, events: updates.flatMap(update => composer.compose(update)) }
}
