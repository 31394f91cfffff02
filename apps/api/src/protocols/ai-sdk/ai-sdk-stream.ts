/**
 * A task's events as the AI SDK's UI message stream. A stream covers one turn, which is one UI message with the id `<task>:<number>`, and ends with
 * that turn. The turn is the one asked for; else the first that has not ended, where the viewer begins; else the last.
 *
 * The SDK always reads the chunks as what the fold of the same events holds. Where sent content is no longer true (a new attempt, a replaced
 * message, a gap), `reset-step` empties the message and the stream sends it again. The cursor stands at the last chunk of an event, so a client
 * that was cut between two chunks gets the whole event again; if that event has several chunks, it is sent as a reset. A turn that waits for
 * nothing but approvals ends the stream, because the page's response to them is another request.
 */
import { type Change, Narrator } from '@rivulet/narrator'
import {
  type Cursor,
  type Event,
  type EventOf,
  hasEnded,
  type Message,
  outcomeOf,
  type Snapshot,
  type StopReason,
  type TaskId,
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
  replacementOf,
  type UiChunk,
  wholeOf,
} from '@rivulet/views/ai-sdk'
import type { DialectStream, LoggedEvent } from '../../stream/dialects/dialect.ts'

type AiSdkStreamOptions = {
  task: TaskId
  /** The turn to stream. */
  turnNumber?: number | undefined
  past?: Past | undefined
  /** The client has the message up to its approvals, and goes on with it after its response. */
  isContinued?: boolean | undefined
}

/** For a client that resumes: a narrator that has recalled the events of the client, and whether the last of them was the end of a turn. */
export type Past = { narrator: Narrator; isAtEnd: boolean }

type Outcome = Pick<EventOf<'turn.finished'>, 'status' | 'error' | 'usage'> & { stopReason?: StopReason | undefined }

export function createAiSdkStream({ task, turnNumber, past, isContinued = false }: AiSdkStreamOptions): DialectStream<UiChunk> {
  const narrator = past?.narrator ?? new Narrator({ turnNumber: turnNumber ?? null })
  /** Whether the client has the start of the message. A client at the end of a turn has nothing of the next one, even if that was queued before. */
  let hasStarted = narrator.turnNumber !== null && past?.isAtEnd === false
  /** Whether the client may have been cut inside the next event. */
  let mayHavePart = narrator.turnNumber !== null && past !== undefined
  let calls = createCalls()
  let isOver = false
  for (const message of ownMessages()) calls.own(message)

  return { take: (cursor, event) => take(cursor, event).map(chunk => deniedOr(chunk, isDeniedCall)), hasEnded: () => isOver }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): UiChunk[] {
    if (isOver) return []
    if (event.type === 'deleted') return end({ status: 'failed', error: { code: 'task_not_found', message: 'The task was deleted' } })
    if (event.type === 'end') return end({ status: hasEnded(event.status) ? event.status : 'completed' })
    const changes = narrator.take(cursor, event)
    if (event.type === 'snapshot') return begin(event)
    // The SDK has no word for these.
    if (changes.every(({ type }) => type === 'child' || type === 'state')) return []
    const first = hasStarted ? [] : start()
    hasStarted = true
    const sent = changes.flatMap(chunksOf)
    const isUnsure = mayHavePart && sent.length > 1
    if (sent.length > 0) mayHavePart = false
    const isPausing = changes.some(change => change.type === 'asked' && !change.more) && isAsking()
    return [...first, ...(isUnsure ? resent() : sent), ...(isPausing ? pause() : [])]
  }

  function begin({ reason }: Snapshot): UiChunk[] {
    const chunks = [...start(), ...(reason === 'join' && !isContinued ? parts() : resent())]
    hasStarted = narrator.turnNumber !== null
    mayHavePart = false
    const ending = endIfOver()
    return [...chunks, ...ending, ...(!isOver && isAsking() ? pause() : [])]
  }

  function chunksOf(change: Change): UiChunk[] {
    if ('message' in change && change.message.author === 'user') return []
    switch (change.type) {
      case 'started':
      case 'child':
      case 'state':
        return []
      case 'reset':
        return change.dropped.some(isShown) ? resent() : []
      case 'opened': {
        const message = calls.own(change.message)
        return [...placeFor(message), ...wholeOf(message)]
      }
      case 'grew':
        return growthOf(calls.own(change.before), calls.own(change.message), change.delta) ?? resent()
      case 'replaced': {
        const message = calls.own(change.message)
        return [...(replacementOf(calls.own(change.before), message) ?? resent()), ...responseTo(message)]
      }
      case 'closed': {
        const message = calls.own(change.message)
        return [...closingOf(message), ...responseTo(message)]
      }
      case 'custom':
        return [{ type: 'data-notice', data: { name: change.name, data: change.data }, transient: true }]
      case 'asked':
        return asked(change.wait)
      case 'answered':
        return isAsked(change.wait) ? [approvalResponse(change.wait)] : []
      case 'ended':
        return endIfOver()
      default:
        return change satisfies never
    }
  }

  function start(): UiChunk[] {
    const { turnNumber } = narrator
    return turnNumber === null ? [] : [{ type: 'start', messageId: `${task}:${turnNumber}`, messageMetadata: { task, turn: turnNumber } }]
  }

  /** The whole message again, for a client that has something else. */
  function resent(): UiChunk[] {
    return [{ type: 'reset-step' }, ...parts()]
  }

  function parts(): UiChunk[] {
    calls = createCalls()
    return ownMessages()
      .map(calls.own)
      .flatMap(message => [...placeFor(message), ...wholeOf(message), ...approvals(message)])
  }

  function waits(): readonly Wait[] {
    return narrator.turn.waits ?? []
  }

  /** The call that a wait is about, under the id that the client knows. */
  function callOf({ callId }: Wait): string | null {
    const call = ownMessages().findLast(({ content }) => content.type === 'tool_request' && content.callId === callId)
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
    const given = narrator.messageAt(message.index)?.content
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

  function endIfOver(): UiChunk[] {
    const { turn } = narrator
    return hasEnded(turn.status) ? end({ ...turn, status: outcomeOf(turn.status) }) : []
  }

  function end(outcome: Outcome): UiChunk[] {
    isOver = true
    return [finishOf(outcome)]
  }

  function ownMessages(): Message[] {
    return narrator.messages.filter(isShown)
  }

  /** The responses to a call that came before the call was closed, because the SDK drops an output when it reads the input. */
  function responseTo({ index, content: call }: Message): UiChunk[] {
    if (call.type !== 'tool_request') return []
    return ownMessages()
      .filter(message => message.index > index)
      .map(calls.own)
      .filter(({ content }) => content.type === 'tool_response' && content.callId === call.callId)
      .flatMap(wholeOf)
  }

  /** The client needs the call of a response: if the log has no such call, this creates one. */
  function placeFor(message: Message): UiChunk[] {
    return message.content.type === 'tool_response' && calls.isUnasked(message) ? [madeUpCall(message.content)] : []
  }
}

function isShown({ author }: Message): boolean {
  return author !== 'user'
}

export async function recallPast(turnNumber: number | undefined, received: AsyncIterable<LoggedEvent>): Promise<Past> {
  const narrator = new Narrator({ turnNumber: turnNumber ?? null })
  let isAtEnd = false
  for await (const { cursor, event } of received) {
    narrator.recall(cursor, event)
    isAtEnd = event.type === 'turn.finished'
  }
  return { narrator, isAtEnd }
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
