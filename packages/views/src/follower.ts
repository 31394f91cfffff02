/**
 * What a view knows of the log: the protocol's own fold, one event further each time. An event that the fold passes over is `null`, and a view
 * says nothing of it.
 */
import {
  applyEvent,
  type Content,
  type Event,
  epochOf,
  formatCursor,
  type Message,
  type MessageEvent,
  messageAt,
  seqOf,
  type TaskState,
} from '@rivulet/protocol'

export type Follower = {
  state(): TaskState
  /** Takes an event that is not about a message. */
  follow(event: Exclude<Event, MessageEvent>): void
  /** The message before and after an event about it. */
  hear(event: MessageEvent): Heard | null
}

export type Heard = { before: Message | undefined; message: Message }

export function createFollower(from: TaskState): Follower {
  let state = from
  return { state: () => state, follow, hear }

  function hear(event: MessageEvent): Heard | null {
    const { discarded } = state
    const before = messageAt(state, event.index)?.message
    follow(event)
    const message = messageAt(state, event.index)?.message
    return message && state.discarded === discarded ? { before, message } : null
  }

  function follow(event: Event): void {
    state = applyEvent(state, event, formatCursor(Math.max(epochOf(state.cursor), 1), seqOf(state.cursor) + 1))
  }
}

/** What the text of a message says beyond what was streamed of it; nothing where it says something else, for words cannot be taken back. */
export function unsaidText(before: Content | undefined, after: Content): string {
  if (after.type !== 'text') return ''
  const said = before?.type === 'text' ? before.text : ''
  return after.text.startsWith(said) ? after.text.slice(said.length) : ''
}

/**
 * What the arguments of a call that is closed say, as JSON text, beyond what was streamed of them. Nothing where they say something else: then
 * what was streamed is not what counts.
 */
export function unsaidArguments(before: Content | undefined, after: Content): string {
  if (after.type !== 'tool_request' || after.raw !== undefined) return ''
  const said = before?.type === 'tool_request' ? (before.raw ?? '') : ''
  const whole = JSON.stringify(after.arguments)
  return whole.startsWith(said) ? whole.slice(said.length) : ''
}
