/**
 * A task as domain events in the vocabulary of coding agents, for interfaces and logs that speak it. The same log gives the same events, each
 * tool event carries the id of its call, every execution that starts finishes once, and nothing is said that the log does not say.
 *
 * A turn here is one response of the model with the execution of its calls, so `turn_finished` follows those and still says `toolUse`.
 * Queued turns are those that wait behind another; a compaction is what an agent tells of as `custom('compaction', …)`.
 */
import {
  createTurnComposer,
  type Event,
  type EventOf,
  emptyState,
  hasEnded,
  type Json,
  type MessageEvent,
  type StopReason,
  type TaskState,
  type Update,
} from '@rivulet/protocol'
import { createFollower, type Heard, unsaidArguments, unsaidText } from './follower.ts'

export type AssistantMessage = { text: string; toolCalls: { id: string; name: string; input: Json }[]; stopReason: AgentStopReason }

export type AgentStopReason = 'stop' | 'toolUse' | 'length' | 'contentFilter' | 'aborted' | 'error' | 'other'

export type AgentEvent =
  | { type: 'assistant_text_delta'; text: string }
  | { type: 'tool_call_started'; id: string; name: string }
  | { type: 'tool_call_arguments_delta'; id: string; delta: string }
  | { type: 'tool_call_ready'; id: string; name: string; input: Json }
  | { type: 'tool_execution_started'; id: string; name: string }
  | { type: 'tool_execution_update'; id: string; text: string }
  | { type: 'tool_execution_finished'; id: string; isError: boolean }
  | { type: 'turn_finished'; message: AssistantMessage }
  | { type: 'aborted' }
  | { type: 'retry'; attempt: number }
  | { type: 'compaction'; data: Json }
  | { type: 'queue_updated'; waiting: number[] }

/**
 * Answers a function that is given each event of a task in order, and says what it means. It begins at the start of the log or at a state, as
 * of a snapshot; the first `turn_finished` then tells of what came after that.
 */
export function createAgentEvents(from: TaskState = emptyState): (event: Event) => AgentEvent[] {
  const follower = createFollower(from)
  const executing = new Map<number, string>()
  let waiting = from.turns.filter(({ status }, at) => status === 'queued' && at > 0).map(({ number }) => number)
  let response = emptyResponse()
  let isAborted = false
  let hasFinished = false

  return eventsOf

  function eventsOf(event: Event): AgentEvent[] {
    switch (event.type) {
      case 'turn.queued':
        return queued(event)
      case 'turn.started':
        return started(event)
      case 'turn.finished':
        return finished(event)
      case 'custom':
        return event.name === 'compaction' ? [{ type: 'compaction', data: event.data }] : []
      case 'turn.waiting':
      case 'turn.resumed':
        follower.follow(event)
        return []
      default:
        return spoken(event)
    }
  }

  function queued(event: EventOf<'turn.queued'>): AgentEvent[] {
    const isBehind = follower.state().turns.some(turn => turn.number !== event.turn && !hasEnded(turn.status))
    follower.follow(event)
    if (!isBehind || waiting.includes(event.turn)) return []
    waiting = [...waiting, event.turn]
    return [{ type: 'queue_updated', waiting }]
  }

  function started(event: EventOf<'turn.started'>): AgentEvent[] {
    follower.follow(event)
    const left = event.attempt > 1 ? stopExecutions() : []
    response = emptyResponse()
    isAborted = hasFinished = false
    return [...left, ...leaveQueue(event.turn), ...(event.attempt > 1 ? [{ type: 'retry', attempt: event.attempt } as const] : [])]
  }

  function finished(event: EventOf<'turn.finished'>): AgentEvent[] {
    const status = follower.state().turns.find(({ number }) => number === event.turn)?.status
    follower.follow(event)
    if (status === 'queued') return leaveQueue(event.turn)
    const events = [...stopExecutions(), ...(event.stopReason === 'aborted' ? abort() : [])]
    const isToldAlready = hasFinished && response.isUntouched && events.length === 0
    return isToldAlready ? [] : [...events, ...endResponse(response.stopReason ?? event.stopReason)]
  }

  function spoken(event: MessageEvent): AgentEvent[] {
    const heard = follower.hear(event)
    if (heard?.message.author !== 'agent') return []
    if (event.type === 'message.started') return opened(event.index, heard)
    if (event.type === 'message.delta') return extended(event, heard)
    return [...(heard.before ? [] : opened(event.index, heard)), ...closed(event.index, heard)]
  }

  function opened(index: number, { message: { content } }: Heard): AgentEvent[] {
    response.open += 1
    response.isUntouched = false
    if (content.type === 'text') return textDelta(content.text)
    if (content.type === 'tool_response') {
      executing.set(index, content.callId)
      return [{ type: 'tool_execution_started', id: content.callId, name: content.name }]
    }
    if (content.type !== 'tool_request') return []
    response.unanswered.add(content.callId)
    return [{ type: 'tool_call_started', id: content.callId, name: content.name }, ...argumentsDelta(content.callId, content.raw ?? '')]
  }

  function extended({ delta }: EventOf<'message.delta'>, { message: { content } }: Heard): AgentEvent[] {
    if (delta.type === 'text') return textDelta(delta.text)
    if (content.type === 'tool_request' && delta.type === 'tool_request') return argumentsDelta(content.callId, delta.text)
    if (content.type !== 'tool_response') return []
    if (delta.type === 'tool_response') return [{ type: 'tool_execution_update', id: content.callId, text: delta.text }]
    return delta.type === 'data' ? [{ type: 'tool_execution_update', id: content.callId, text: JSON.stringify(delta.value) }] : []
  }

  function closed(index: number, { before, message: { content, status, stopReason } }: Heard): AgentEvent[] {
    response.open -= 1
    if (stopReason) response.stopReason = stopReason
    const events: AgentEvent[] = []
    if (content.type === 'text') {
      // One that was never open has been told whole by its opening.
      events.push(...textDelta(before ? unsaidText(before.content, content) : ''))
      response.text += content.text
    } else if (content.type === 'tool_request' && status === 'complete') {
      const { callId: id, name, arguments: input } = content
      events.push(...argumentsDelta(id, unsaidArguments(before?.content, content)), { type: 'tool_call_ready', id, name, input })
      response.toolCalls.push({ id, name, input })
    } else if (content.type === 'tool_response') {
      executing.delete(index)
      response.unanswered.delete(content.callId)
      events.push({ type: 'tool_execution_finished', id: content.callId, isError: content.isError || status !== 'complete' })
    }
    if (stopReason === 'aborted') events.push(...abort())
    const isOver = response.stopReason !== null && response.open === 0 && response.unanswered.size === 0
    return isOver ? [...events, ...endResponse(response.stopReason ?? 'other')] : events
  }

  function endResponse(stopReason: StopReason): AgentEvent[] {
    const { text, toolCalls } = response
    response = emptyResponse()
    hasFinished = true
    return [{ type: 'turn_finished', message: { text, toolCalls, stopReason: nameOf(stopReason) } }]
  }

  function abort(): AgentEvent[] {
    if (isAborted) return []
    isAborted = true
    return [{ type: 'aborted' }]
  }

  /** A worker that died did not say how its tools ended. */
  function stopExecutions(): AgentEvent[] {
    const ids = [...executing.values()]
    executing.clear()
    return ids.map(id => ({ type: 'tool_execution_finished', id, isError: true }))
  }

  function leaveQueue(turn: number): AgentEvent[] {
    if (!waiting.includes(turn)) return []
    waiting = waiting.filter(number => number !== turn)
    return [{ type: 'queue_updated', waiting }]
  }
}

/** The same of a run that is on no platform: it is given the updates of `runAgent`, or of any stream of a model. */
export function createRunEvents(): (update: Update) => AgentEvent[] {
  const composer = createTurnComposer({ task: '', turn: 1, attempt: 1, firstIndex: 0 })
  const eventsOf = createAgentEvents()
  return update => composer.compose(update).flatMap(event => eventsOf(event))
}

type OpenResponse = Omit<AssistantMessage, 'stopReason'> & {
  stopReason: StopReason | null
  open: number
  unanswered: Set<string>
  isUntouched: boolean
}

function emptyResponse(): OpenResponse {
  return { text: '', toolCalls: [], stopReason: null, open: 0, unanswered: new Set(), isUntouched: true }
}

function textDelta(text: string): AgentEvent[] {
  return text === '' ? [] : [{ type: 'assistant_text_delta', text }]
}

function argumentsDelta(id: string, delta: string): AgentEvent[] {
  return delta === '' ? [] : [{ type: 'tool_call_arguments_delta', id, delta }]
}

function nameOf(reason: StopReason): AgentStopReason {
  if (reason === 'tool_use') return 'toolUse'
  return reason === 'content_filter' ? 'contentFilter' : reason
}
