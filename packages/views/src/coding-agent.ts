/**
 * A task as the domain events of coding agents, for interfaces and logs that use them. The same log gives the same events, each tool event
 * carries the id of its call, and every execution that starts finishes once.
 *
 * A turn here is one response of the model with the execution of its calls, so `turn_finished` follows the executions and has the stop reason
 * `toolUse`. Queued turns are those behind an unfinished turn. Compactions and retries of a request to the model are custom events.
 */
import {
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
import { createFollower, type MessageChange, remainingArguments, type View, viewOf } from './follower.ts'
import { createTextOrder, type TextEvent, type TextOrder } from './text-order.ts'

export type AssistantMessage = { text: string; toolCalls: { id: string; name: string; input: Json }[]; stopReason: AgentStopReason }

export type AgentStopReason = 'stop' | 'toolUse' | 'length' | 'contentFilter' | 'aborted' | 'error' | 'other'

export type AgentEvent =
  | TextEvent
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
  | { type: 'model_retry'; data: Json }
  | { type: 'queue_updated'; waiting: number[] }

/**
 * Returns a function that takes each event of a task in order and returns its agent events. It starts at the beginning of the log or at a
 * state, for example of a snapshot; the first `turn_finished` then covers only what came after that state.
 */
export function createAgentEvents(from: TaskState = emptyState): View<AgentEvent> {
  const follower = createFollower(from)
  const executing = new Map<number, string>()
  let waiting = from.turns.filter(({ status }, at) => status === 'queued' && at > 0).map(({ number }) => number)
  let response = emptyResponse()
  let isAborted = false
  let hasFinished = false

  return viewOf(eventsOf)

  function eventsOf(event: Event): AgentEvent[] {
    switch (event.type) {
      case 'turn.queued':
        return queued(event)
      case 'turn.started':
        return started(event)
      case 'turn.finished':
        return finished(event)
      case 'custom':
        return event.name === 'compaction' || event.name === 'model_retry' ? [{ type: event.name, data: event.data }] : []
      case 'turn.joined':
        follower.follow(event)
        return leaveQueue(event.turn)
      case 'turn.discarded':
      case 'state.changed':
      case 'child.started':
      case 'child.finished':
      case 'turn.waiting':
      case 'turn.resumed':
        follower.follow(event)
        return []
      default:
        return messageChanged(event)
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
    const turn = follower.state().turns.find(({ number }) => number === event.turn)
    follower.follow(event)
    if (turn?.status === 'queued' || turn?.joinedTo !== undefined) return leaveQueue(event.turn)
    const events = [...stopExecutions(), ...(event.stopReason === 'aborted' ? abort() : [])]
    const isReported = hasFinished && response.isUntouched && events.length === 0
    return isReported ? [] : [...events, ...endResponse(response.stopReason ?? event.stopReason)]
  }

  function messageChanged(event: MessageEvent): AgentEvent[] {
    const change = follower.followMessage(event)
    if (change?.message.author !== 'agent') return []
    if (event.type === 'message.started') return opened(event.index, change)
    if (event.type === 'message.delta') return extended(event, change)
    return [...(change.before ? [] : opened(event.index, change)), ...closed(event.index, change)]
  }

  function opened(index: number, { message: { content } }: MessageChange): AgentEvent[] {
    response.open += 1
    response.isUntouched = false
    if (content.type === 'text') return response.texts.open(index, content.text)
    if (content.type === 'tool_response') {
      executing.set(index, content.callId)
      return [{ type: 'tool_execution_started', id: content.callId, name: content.name }]
    }
    if (content.type !== 'tool_request') return []
    response.pendingCalls.add(content.callId)
    return [{ type: 'tool_call_started', id: content.callId, name: content.name }, ...argumentsDelta(content.callId, content.raw ?? '')]
  }

  function extended({ index, delta }: EventOf<'message.delta'>, { message: { content } }: MessageChange): AgentEvent[] {
    if (delta.type === 'text') return response.texts.append(index, delta.text)
    if (content.type === 'tool_request' && delta.type === 'tool_request') return argumentsDelta(content.callId, delta.text)
    if (content.type !== 'tool_response') return []
    if (delta.type === 'tool_response') return [{ type: 'tool_execution_update', id: content.callId, text: delta.text }]
    return delta.type === 'data' ? [{ type: 'tool_execution_update', id: content.callId, text: JSON.stringify(delta.value) }] : []
  }

  function closed(index: number, { before, message: { content, status, stopReason } }: MessageChange): AgentEvent[] {
    response.open -= 1
    if (stopReason) response.stopReason = stopReason
    const events: AgentEvent[] = []
    if (content.type === 'text') {
      // For a message that was never open, `opened` has already emitted the whole text.
      const shown = before ? before.content : content
      events.push(...response.texts.close(index, shown.type === 'text' ? shown.text : '', content.text))
    } else if (content.type === 'tool_request' && status === 'complete') {
      const { callId: id, name, arguments: input } = content
      events.push(...argumentsDelta(id, remainingArguments(before?.content, content)), { type: 'tool_call_ready', id, name, input })
      response.toolCalls.push({ id, name, input })
    } else if (content.type === 'tool_response') {
      executing.delete(index)
      response.pendingCalls.delete(content.callId)
      events.push({ type: 'tool_execution_finished', id: content.callId, isError: content.isError || status !== 'complete' })
    }
    if (stopReason === 'aborted') events.push(...abort())
    const isOver = response.stopReason !== null && response.open === 0 && response.pendingCalls.size === 0
    return isOver ? [...events, ...endResponse(response.stopReason ?? 'other')] : events
  }

  function endResponse(stopReason: StopReason): AgentEvent[] {
    const { texts, toolCalls } = response
    response = emptyResponse()
    hasFinished = true
    return [{ type: 'turn_finished', message: { text: texts.text(), toolCalls, stopReason: nameOf(stopReason) } }]
  }

  function abort(): AgentEvent[] {
    if (isAborted) return []
    isAborted = true
    return [{ type: 'aborted' }]
  }

  /** Finishes the executions of a worker that died, because the log has no end for them. */
  function stopExecutions(): AgentEvent[] {
    const ids = [...executing.values()]
    executing.clear()
    return ids.map(id => ({ type: 'tool_execution_finished', id, isError: true }))
  }

  function leaveQueue(turnNumber: number): AgentEvent[] {
    if (!waiting.includes(turnNumber)) return []
    waiting = waiting.filter(number => number !== turnNumber)
    return [{ type: 'queue_updated', waiting }]
  }
}

/** The same events for a run without the platform: takes the updates of `runAgent` or of a model's stream. */
export function createRunEvents(): (update: Update) => AgentEvent[] {
  return createAgentEvents()
}

type OpenResponse = Pick<AssistantMessage, 'toolCalls'> & {
  texts: TextOrder
  stopReason: StopReason | null
  open: number
  pendingCalls: Set<string>
  isUntouched: boolean
}

function emptyResponse(): OpenResponse {
  return { texts: createTextOrder(), toolCalls: [], stopReason: null, open: 0, pendingCalls: new Set(), isUntouched: true }
}

function argumentsDelta(id: string, delta: string): AgentEvent[] {
  return delta === '' ? [] : [{ type: 'tool_call_arguments_delta', id, delta }]
}

function nameOf(reason: StopReason): AgentStopReason {
  if (reason === 'tool_use') return 'toolUse'
  return reason === 'content_filter' ? 'contentFilter' : reason
}
