/**
 * A task's events as the AI SDK's UI message stream. A stream covers one turn, which is one UI message with the id `<task>:<number>`, and ends with
 * that turn. The turn is the one asked for; else the first that has not ended, where the viewer begins; else the last.
 *
 * The SDK always reads the chunks as what the fold of the same events holds. Where sent content is no longer true (a new attempt, a replaced
 * message, a gap), `reset-step` empties the message and the stream sends it again. The cursor stands at the last chunk of an event, so a client
 * that was cut between two chunks gets the whole event again; if that event has several chunks, it is sent as a reset.
 */
import {
  applyOrSkip,
  type Cursor,
  type Event,
  type EventOf,
  emptyState,
  hasEnded,
  isMessageEvent,
  type Message,
  messageAt,
  messagesOf,
  restoreState,
  type Snapshot,
  type StopReason,
  type TaskId,
  type TaskState,
  type TokenEvent,
  type Usage,
  type WireEvent,
} from '@rivulet/protocol'
import { closingOf, createCalls, growthOf, madeUpCall, openingOf, replacementOf, type UiChunk, wholeOf } from '@rivulet/views/ai-sdk'
import type { DialectStream, LoggedEvent } from '../dialect.ts'

export type AiSdkStreamOptions = {
  task: TaskId
  /** The turn to stream. */
  turnNumber?: number | undefined
  heard?: HeardBefore | undefined
}

/** For a client that resumes: the fold of the events it has, and whether the last of them was the end of a turn. */
export type HeardBefore = { state: TaskState; isAtEnd: boolean }

type Outcome = Pick<EventOf<'turn.finished'>, 'status' | 'error' | 'usage'> & { stopReason?: StopReason | undefined }

export function createAiSdkStream({ task, turnNumber: wanted, heard }: AiSdkStreamOptions): DialectStream<UiChunk> {
  let state = heard?.state ?? emptyState
  let turnNumber = wanted ?? unfinishedTurn(state)
  /** Whether the client has the start of the message. A client at the end of a turn has nothing of the next one, even if that was queued before. */
  let hasStarted = turnNumber !== null && heard?.isAtEnd === false
  let mayHaveHeardPart = turnNumber !== null && heard !== undefined
  let calls = createCalls()
  let isOver = false
  for (const message of messagesOf(state).filter(isTold)) calls.own(message)

  return { take, hasEnded: () => isOver }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): UiChunk[] {
    if (isOver) return []
    switch (event.type) {
      case 'snapshot':
        return begin(cursor, event)
      case 'caught_up':
      // The SDK rejects chunks that it does not know.
      case 'token':
        return []
      case 'end':
        return end({ status: hasEnded(event.status) ? event.status : 'completed' })
      case 'deleted':
        return end({ status: 'failed', error: { code: 'task_not_found', message: 'The task was deleted' } })
      default:
        return follow(cursor, event)
    }
  }

  function begin(cursor: Cursor, { reason, task: { status }, turns, messages, messagesFrom }: Snapshot): UiChunk[] {
    turnNumber ??= unfinishedTurn({ turns }) ?? turns.at(-1)?.number ?? null
    // Other turns may take a megabyte of a snapshot, and every viewer would keep it.
    const ofTurn = messages.filter(message => message.turn === turnNumber)
    state = restoreState(cursor, { status, turns, messages: ofTurn, messagesFrom: ofTurn[0]?.index ?? messagesFrom + messages.length })
    const told = turns.find(({ number }) => number === turnNumber)
    const chunks = [...start(), ...(reason === 'join' ? parts() : retold())]
    hasStarted = turnNumber !== null
    mayHaveHeardPart = false
    return told && hasEnded(told.status) ? [...chunks, ...end({ ...told, status: told.status })] : chunks
  }

  function follow(cursor: Cursor, event: Event): UiChunk[] {
    if (turnNumber !== null && event.turn !== turnNumber && isMessageEvent(event)) return []
    const before = state
    state = applyOrSkip(before, event, cursor)
    if (event.type === 'turn.queued' || event.type === 'turn.started') turnNumber ??= event.turn
    if (event.turn !== turnNumber || state === before || state.discarded > before.discarded) return []
    const first = hasStarted ? [] : start()
    hasStarted = true
    const said = chunksOf(event, before)
    const isUnsure = mayHaveHeardPart && said.length > 1
    if (said.length > 0) mayHaveHeardPart = false
    return [...first, ...(isUnsure ? retold() : said)]
  }

  function chunksOf(event: Event, before: TaskState): UiChunk[] {
    switch (event.type) {
      case 'turn.started':
        return messagesOf(before).some(isTold) ? retold() : []
      case 'message.started':
      case 'message.delta':
      case 'message.replaced':
      case 'message.finished': {
        const [old, after] = [messageAt(before, event.index)?.message, messageAt(state, event.index)?.message]
        return after && isTold(after) ? change(event, old && calls.own(old), calls.own(after)) : []
      }
      case 'custom':
        return [{ type: 'data-notice', data: { name: event.name, data: event.data }, transient: true }]
      case 'turn.finished':
        return end(event)
      case 'turn.queued':
      case 'turn.joined':
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
        return before ? (growthOf(before, after, event.delta) ?? retold()) : []
      case 'message.replaced':
        if (!before) return [...placeFor(after), ...wholeOf(after)]
        return [...(replacementOf(before, after) ?? retold()), ...responseTo(after)]
      case 'message.finished':
        return [...closingOf(after), ...responseTo(after)]
      default:
        return event satisfies never
    }
  }

  function start(): UiChunk[] {
    return turnNumber === null ? [] : [{ type: 'start', messageId: `${task}:${turnNumber}`, messageMetadata: { task, turn: turnNumber } }]
  }

  /** The whole message again, for a client that has something else. */
  function retold(): UiChunk[] {
    return [{ type: 'reset-step' }, ...parts()]
  }

  function parts(): UiChunk[] {
    calls = createCalls()
    return messagesOf(state)
      .filter(isTold)
      .map(calls.own)
      .flatMap(message => [...placeFor(message), ...wholeOf(message)])
  }

  function end(outcome: Outcome): UiChunk[] {
    isOver = true
    return [finishOf(outcome)]
  }

  function isTold(message: Message): boolean {
    return message.turn === turnNumber && message.author !== 'user'
  }

  /** The responses to a call that came before the call was closed, because the SDK drops an output when it reads the input. */
  function responseTo({ index, content: call }: Message): UiChunk[] {
    if (call.type !== 'tool_request') return []
    return messagesOf(state)
      .filter(message => message.index > index && isTold(message))
      .map(calls.own)
      .filter(({ content }) => content.type === 'tool_response' && content.callId === call.callId)
      .flatMap(wholeOf)
  }

  /** The client needs the call of a response: if the log has no such call, this creates one. */
  function placeFor(message: Message): UiChunk[] {
    return message.content.type === 'tool_response' && calls.isUnasked(message) ? [madeUpCall(message.content)] : []
  }
}

function unfinishedTurn({ turns }: Pick<TaskState, 'turns'>): number | null {
  return turns.find(({ status }) => !hasEnded(status))?.number ?? null
}

export async function foldHeard(heard: AsyncIterable<LoggedEvent>): Promise<HeardBefore> {
  let state = emptyState
  let isAtEnd = false
  for await (const { cursor, event } of heard) {
    state = applyOrSkip(state, event, cursor)
    isAtEnd = event.type === 'turn.finished'
  }
  return { state, isAtEnd }
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
