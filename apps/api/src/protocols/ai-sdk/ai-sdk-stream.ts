/**
 * A task's events as the AI SDK's UI message stream. A stream covers one turn, which is one UI message with the id `<task>:<number>`, and ends with
 * that turn. The turn is the one asked for; else the first that has not ended, where the viewer begins; else the last.
 *
 * The SDK always reads the chunks as what the fold of the same events holds. Where sent content is no longer true (a new attempt, a replaced
 * message, a gap), `reset-step` empties the message and the stream sends it again. The cursor stands at the last chunk of an event, so a client
 * that was cut between two chunks gets the whole event again; if that event has several chunks, it is sent as a reset. A turn that waits for
 * nothing but approvals ends the stream, because the page's response to them is another request.
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
  outcomeOf,
  restoreState,
  type Snapshot,
  type StopReason,
  type TaskId,
  type TaskState,
  type TokenEvent,
  type Usage,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
import {
  approvalRequest,
  approvalResponse,
  approvalsOf,
  closingOf,
  createCalls,
  deniedOr,
  growthOf,
  isApproval,
  isDenied,
  madeUpCall,
  openingOf,
  replacementOf,
  type UiChunk,
  wholeOf,
} from '@rivulet/views/ai-sdk'
import type { DialectStream, LoggedEvent } from '../../stream/dialects/dialect.ts'

export type AiSdkStreamOptions = {
  task: TaskId
  /** The turn to stream. */
  turnNumber?: number | undefined
  heard?: HeardBefore | undefined
  /** The client has the message up to its approvals, and goes on with it after its response. */
  isContinued?: boolean | undefined
}

/** For a client that resumes: the fold of the events it has, and whether the last of them was the end of a turn. */
export type HeardBefore = { state: TaskState; isAtEnd: boolean }

type Outcome = Pick<EventOf<'turn.finished'>, 'status' | 'error' | 'usage'> & { stopReason?: StopReason | undefined }

export function createAiSdkStream({ task, turnNumber: wanted, heard, isContinued = false }: AiSdkStreamOptions): DialectStream<UiChunk> {
  let state = heard?.state ?? emptyState
  let turnNumber = wanted ?? unfinishedTurn(state)
  /** Whether the client has the start of the message. A client at the end of a turn has nothing of the next one, even if that was queued before. */
  let hasStarted = turnNumber !== null && heard?.isAtEnd === false
  let mayHaveHeardPart = turnNumber !== null && heard !== undefined
  let calls = createCalls()
  let isOver = false
  for (const message of messagesOf(state).filter(isTold)) calls.own(message)

  return { take: (cursor, event) => take(cursor, event).map(chunk => deniedOr(chunk, isDeniedCall)), hasEnded: () => isOver }

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
    const chunks = [...start(), ...(reason === 'join' && !isContinued ? parts() : retold())]
    hasStarted = turnNumber !== null
    mayHaveHeardPart = false
    if (told && hasEnded(told.status)) return [...chunks, ...end({ ...told, status: outcomeOf(told.status) })]
    return isAsking() ? [...chunks, ...pause()] : chunks
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
    const pausing = event.type === 'turn.waiting' && event.more !== true && isAsking() ? pause() : []
    return [...first, ...(isUnsure ? retold() : said), ...pausing]
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
      case 'turn.waiting':
        return asked(event.wait)
      case 'turn.resumed':
        return waits()
          .filter(wait => wait.id === event.wait && isAsked(wait))
          .map(approvalResponse)
      case 'turn.queued':
      case 'turn.discarded':
      case 'state.changed':
      case 'child.started':
      case 'child.finished':
      case 'turn.joined':
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
      .flatMap(message => [...placeFor(message), ...wholeOf(message), ...approvals(message)])
  }

  function waits(): readonly Wait[] {
    return state.turns.find(({ number }) => number === turnNumber)?.waits ?? []
  }

  /** The call that a wait is about, under the id that the client knows. */
  function callOf({ callId }: Wait): string | null {
    const call = messagesOf(state).findLast(
      message => isTold(message) && message.content.type === 'tool_request' && message.content.callId === callId,
    )
    const content = call && calls.own(call).content
    return content?.type === 'tool_request' ? content.callId : null
  }

  function isAsked(wait: Wait): boolean {
    return isApproval(wait) && callOf(wait) !== null
  }

  /** An approval of a call, for the SDK's response; any other question as data that no message keeps. */
  function asked(wait: Wait): UiChunk[] {
    const toolCallId = isApproval(wait) ? callOf(wait) : null
    return toolCallId === null ? [{ type: 'data-wait', data: wait, transient: true }] : [approvalRequest(wait, toolCallId)]
  }

  function approvals(message: Message): UiChunk[] {
    const { content } = message
    if (content.type !== 'tool_request') return []
    // The id that the model gave, which the wait has.
    const given = messageAt(state, message.index)?.message.content
    return given?.type === 'tool_request' ? approvalsOf(waits(), given.callId, content.callId) : []
  }

  function isDeniedCall(toolCallId: unknown): boolean {
    return waits().some(wait => isApproval(wait) && isDenied(wait) && callOf(wait) === toolCallId)
  }

  /** Whether the turn waits for nothing but approvals: then the page has to respond before anything follows. */
  function isAsking(): boolean {
    const open = waits().filter(({ status }) => status === 'open')
    return open.length > 0 && open.every(isAsked)
  }

  /** The response ends here, as the SDK expects it; the stream of the page's response goes on with the same message. */
  function pause(): UiChunk[] {
    isOver = true
    return [{ type: 'finish', finishReason: 'tool-calls' }]
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
