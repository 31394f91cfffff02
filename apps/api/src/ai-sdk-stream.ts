/**
 * A task's events as the AI SDK's UI message stream. What is told is one turn: it is one UI message there, `<task>:<number>`, and its end is the
 * end of the stream. The turn is the one asked for; else the first that has not ended, where the viewer begins; else the last.
 *
 * The chunks, read by the SDK, always add up to what the fold of the same events holds. Where what was said has to be unsaid (a new attempt, a
 * message that was replaced, a gap) the message is emptied by `reset-step` and said anew. The cursor stands at the last chunk of an event, so who
 * is cut between the chunks of one event hears all of them again; for that the first event after a resume is said as a reset, if it is several.
 */
import {
  applyEvent,
  type Cursor,
  type Event,
  type EventOf,
  emptyState,
  hasEnded,
  type Message,
  messageAt,
  messagesOf,
  RivuletError,
  restoreState,
  type Snapshot,
  type StopReason,
  type TaskState,
  type Usage,
  type WireEvent,
} from '@rivulet/protocol'
import { callOf, closingOf, growthOf, openingOf, replacementOf, type UiChunk, wholeOf } from './ai-sdk-chunks.ts'

export type AiSdkStream = {
  /** What an event is to the SDK; none where it is nothing. */
  take(cursor: Cursor, event: Event | WireEvent): UiChunk[]
  /** Whether the turn is over: nothing follows. */
  hasEnded(): boolean
}

export type AiSdkStreamOptions = {
  task: string
  /** The turn to tell. */
  turn?: number | undefined
  /** For who comes back: the fold of what it has heard. */
  heard?: TaskState | undefined
}

type Outcome = Pick<EventOf<'turn.finished'>, 'status' | 'error' | 'usage'> & { stopReason?: StopReason | undefined }

export function createAiSdkStream({ task, turn: wanted, heard }: AiSdkStreamOptions): AiSdkStream {
  let state = heard ?? emptyState
  let turn = wanted ?? unfinishedTurn(state)
  /** Whether the client has the message. */
  let hasStarted = heard !== undefined && turn !== null
  let mayHaveHeardPart = hasStarted
  let isOver = false

  return { take, hasEnded: () => isOver }

  function take(cursor: Cursor, event: Event | WireEvent): UiChunk[] {
    if (isOver) return []
    switch (event.type) {
      case 'snapshot':
        return begin(cursor, event)
      case 'caught_up':
        return []
      case 'end':
        return end({ status: hasEnded(event.status) ? event.status : 'completed' })
      default:
        return follow(cursor, event)
    }
  }

  function begin(cursor: Cursor, { reason, task: { status }, turns, messages, messagesFrom }: Snapshot): UiChunk[] {
    state = restoreState(cursor, { status, turns, messages, messagesFrom })
    turn ??= unfinishedTurn(state) ?? turns.at(-1)?.number ?? null
    const told = turns.find(({ number }) => number === turn)
    const chunks = [...start(), ...(reason === 'join' ? parts() : retold())]
    hasStarted = turn !== null
    mayHaveHeardPart = false
    return told && hasEnded(told.status) ? [...chunks, ...end({ ...told, status: told.status })] : chunks
  }

  function follow(cursor: Cursor, event: Event): UiChunk[] {
    const before = state
    state = fold(before, event, cursor)
    if (event.type === 'turn.queued' || event.type === 'turn.started') turn ??= event.turn
    if (event.turn !== turn || state === before || state.discarded > before.discarded) return []
    const first = hasStarted ? [] : start()
    hasStarted = true
    const chunks = [...first, ...chunksOf(event, before)]
    const isUnsure = mayHaveHeardPart && chunks.length > 1
    if (chunks.length > 0) mayHaveHeardPart = false
    return isUnsure ? retold() : chunks
  }

  function chunksOf(event: Event, before: TaskState): UiChunk[] {
    switch (event.type) {
      case 'turn.started':
        return messagesOf(before).some(isTold) ? retold() : []
      case 'message.started':
      case 'message.delta':
      case 'message.replaced':
      case 'message.finished': {
        const after = messageAt(state, event.index)?.message
        return after && isTold(after) ? change(event, messageAt(before, event.index)?.message, after) : []
      }
      case 'custom':
        return [{ type: 'data-notice', data: { name: event.name, data: event.data }, transient: true }]
      case 'turn.finished':
        return end(event)
      case 'turn.queued':
      case 'turn.waiting':
      case 'turn.resumed':
        return []
      default:
        return event satisfies never
    }
  }

  function change(
    event: EventOf<'message.started' | 'message.delta' | 'message.replaced' | 'message.finished'>,
    before: Message | undefined,
    after: Message,
  ): UiChunk[] {
    switch (event.type) {
      case 'message.started':
        return [...placeFor(after), ...openingOf(after)]
      case 'message.delta':
        return before ? growthOf(before, after, event.delta) : []
      case 'message.replaced':
        if (!before) return [...placeFor(after), ...wholeOf(after)]
        return replacementOf(before, after) ?? retold()
      case 'message.finished':
        return closingOf(after)
      default:
        return event satisfies never
    }
  }

  function start(): UiChunk[] {
    return turn === null ? [] : [{ type: 'start', messageId: `${task}:${turn}`, messageMetadata: { task, turn } }]
  }

  /** All of it again, for who has heard something else. */
  function retold(): UiChunk[] {
    return [{ type: 'reset-step' }, ...parts()]
  }

  function parts(): UiChunk[] {
    return messagesOf(state)
      .filter(isTold)
      .flatMap(message => [...placeFor(message), ...wholeOf(message)])
  }

  function end(outcome: Outcome): UiChunk[] {
    isOver = true
    return [finishOf(outcome)]
  }

  function isTold(message: Message): boolean {
    return message.turn === turn && message.author !== 'user'
  }

  /** A response belongs to a call that the client has heard of; where there was none, one is made up for it. */
  function placeFor(message: Message): UiChunk[] {
    const { content } = message
    if (content.type !== 'tool_response') return []
    const isAsked = messagesOf(state).some(
      ({ content: other, turn: of, index }) =>
        of === turn && index < message.index && other.type === 'tool_request' && other.callId === content.callId,
    )
    return isAsked ? [] : [callOf({ ...message, content })]
  }
}

function unfinishedTurn({ turns }: TaskState): number | null {
  return turns.find(({ status }) => !hasEnded(status))?.number ?? null
}

/** As the feed folds: an entry that makes no sense is passed over. */
export function fold(state: TaskState, event: Event, cursor: Cursor): TaskState {
  try {
    return applyEvent(state, event, cursor)
  } catch (error) {
    if (!(error instanceof RivuletError)) throw error
    return { ...state, cursor, discarded: state.discarded + 1 }
  }
}

function finishOf({ status, stopReason = 'stop', error, usage }: Outcome): UiChunk {
  if (status === 'failed') return { type: 'error', errorText: error?.message ?? 'The turn failed' }
  if (status === 'canceled') return { type: 'abort', reason: error?.message ?? 'canceled' }
  return { type: 'finish', finishReason: finishReasons[stopReason], ...metadataOf(usage) }
}

function metadataOf(usage: Usage | undefined): { messageMetadata?: { usage: Usage } } {
  return usage ? { messageMetadata: { usage } } : {}
}

const finishReasons = {
  stop: 'stop',
  tool_use: 'tool-calls',
  length: 'length',
  content_filter: 'content-filter',
  error: 'error',
  aborted: 'other',
  other: 'other',
} as const satisfies Record<StopReason, string>
