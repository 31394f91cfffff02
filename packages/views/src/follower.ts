/**
 * Follows a log for a view with the protocol's fold, one event at a time. For an event that the fold skips, `followMessage` returns
 * null and the view emits nothing. Messages of turns that have ended are forgotten, so a view of a long task stays small.
 */
import {
  applyOrSkip,
  type Content,
  createTurnComposer,
  type Event,
  emptyState,
  epochOf,
  formatCursor,
  hasEnded,
  type Message,
  type MessageEvent,
  messageAt,
  nextIndexOf,
  seqOf,
  type TaskState,
  type TurnComposer,
  type Update,
} from '@rivulet/protocol'

type Follower = {
  state(): TaskState
  /** Applies an event that is not about a message. */
  follow(event: Exclude<Event, MessageEvent>): void
  /** Applies an event about a message, and returns the message before and after it. */
  followMessage(event: MessageEvent): MessageChange | null
}

export type MessageChange = { before: Message | undefined; message: Message }

/** Takes the events of a task, or the updates of a model or a run that have no task, each in order. */
export type View<T> = (given: Event | Update) => T[]

export function viewOf<T>(eventsOf: (event: Event) => T[]): View<T> {
  let composer: TurnComposer | undefined
  return given => {
    if ('task' in given) return eventsOf(given)
    composer ??= createTurnComposer({ task: '', turn: 1, attempt: 1, firstIndex: 0 })
    return composer.compose(given).flatMap(event => eventsOf(event))
  }
}

export function createFollower(from: TaskState): Follower {
  let state = from
  return { state: () => state, follow, followMessage }

  function followMessage(event: MessageEvent): MessageChange | null {
    const { discarded } = state
    const before = messageAt(state, event.index)?.message
    follow(event)
    const message = messageAt(state, event.index)?.message
    return message && state.discarded === discarded ? { before, message } : null
  }

  function follow(event: Event): void {
    state = applyOrSkip(state, event, formatCursor(Math.max(epochOf(state.cursor), 1), seqOf(state.cursor) + 1))
    if (event.type === 'turn.finished') state = withoutEnded(state)
  }
}

function withoutEnded(state: TaskState): TaskState {
  const isUnderWay = state.turns.some(({ status, joinedTo }) => joinedTo === undefined && (status === 'running' || status === 'waiting'))
  if (isUnderWay) return state
  const turns = state.turns.filter(({ status }) => !hasEnded(status))
  return { ...state, turns, messages: emptyState.messages, messagesFrom: nextIndexOf(state) }
}

/** Whether an event is of a turn that has joined another one, whose end is the end of both. Asked before the event is followed. */
export function isPartOfOther(follower: Follower, { turn: number }: Event): boolean {
  return follower.state().turns.some(turn => turn.number === number && turn.joinedTo !== undefined)
}

/** The text of a message beyond what was streamed. Empty when the text differs from the streamed part, because streamed text cannot be withdrawn. */
export function remainingText(before: Content | undefined, after: Content): string {
  if (after.type !== 'text') return ''
  const streamed = before?.type === 'text' ? before.text : ''
  return after.text.startsWith(streamed) ? after.text.slice(streamed.length) : ''
}

/** The arguments of a closed call, as JSON text, beyond what was streamed. Empty when they differ from the streamed part. */
export function remainingArguments(before: Content | undefined, after: Content): string {
  if (after.type !== 'tool_request' || after.raw !== undefined) return ''
  const streamed = before?.type === 'tool_request' ? (before.raw ?? '') : ''
  const whole = JSON.stringify(after.arguments)
  return whole.startsWith(streamed) ? whole.slice(streamed.length) : ''
}
