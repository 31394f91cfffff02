/**
 * A task in the event model of mini-claw-code: the events of each response of the model, the accumulator of an assistant's turn, and the
 * events of its interface. Also its parser for one line of a provider's stream.
 *
 * `Done` ends a response, and the calls of each response are counted from 0. Left out, because this model has no events for them: reasoning,
 * tool results, data, media, and a text that replaces streamed text.
 */
import { type Content, type EventOf, emptyState, isMessageEvent, type MessageEvent, type TaskState } from '@rivulet/protocol'
import { createFollower, isPartOfOther, type MessageChange, remainingArguments, remainingText, type View, viewOf } from '../follower.ts'
import type { StreamEvent } from './stream-accumulator.ts'

export { type ChunkResponse, parseSseLine } from './sse-line.ts'
export { type AssistantTurn, type PartialToolCall, StreamAccumulator, type StreamEvent, type ToolCall } from './stream-accumulator.ts'

export type AgentEvent =
  | { type: 'TextDelta'; text: string }
  | { type: 'ToolCall'; name: string; summary: string }
  | { type: 'Done'; text: string }
  | { type: 'Error'; message: string }

/** Returns a function that takes each event of a task in order and returns the events of the model's response. */
export function createStreamEvents(from: TaskState = emptyState): View<StreamEvent> {
  const follower = createFollower(from)
  /** The number of each call in its response, by the index of its message. */
  const calls = new Map<number, number>()
  let open = 0
  let isOver = true

  return viewOf(event => {
    if (isMessageEvent(event)) return messageChanged(event)
    const isPart = isPartOfOther(follower, event)
    follower.follow(event)
    if (event.type === 'turn.started') forget()
    return event.type === 'turn.finished' && !isOver && !isPart ? end() : []
  })

  function messageChanged(event: MessageEvent): StreamEvent[] {
    const change = follower.followMessage(event)
    if (change?.message.author !== 'agent' || change.message.content.type === 'tool_response') return []
    isOver = false
    if (event.type === 'message.started') return opened(event.index, change.message.content)
    if (event.type === 'message.delta') return extended(event)
    const { before, message } = change
    const events = [...(before ? [] : opened(event.index, message.content)), ...closed(event.index, change)]
    return message.stopReason && open === 0 ? [...events, ...end()] : events
  }

  function opened(at: number, content: Content): StreamEvent[] {
    open += 1
    if (content.type === 'text') return textDelta(content.text)
    if (content.type !== 'tool_request') return []
    const index = calls.size
    calls.set(at, index)
    return [{ type: 'ToolCallStart', index, id: content.callId, name: content.name }, ...callDelta(index, content.raw ?? '')]
  }

  function extended({ index, delta }: EventOf<'message.delta'>): StreamEvent[] {
    if (delta.type === 'text') return textDelta(delta.text)
    return delta.type === 'tool_request' ? callDelta(calls.get(index) ?? 0, delta.text) : []
  }

  function closed(at: number, { before, message: { content } }: MessageChange): StreamEvent[] {
    open -= 1
    if (content.type === 'text') return before ? textDelta(remainingText(before.content, content)) : []
    return callDelta(calls.get(at) ?? 0, remainingArguments(before?.content, content))
  }

  function end(): StreamEvent[] {
    forget()
    return [{ type: 'Done' }]
  }

  function forget(): void {
    calls.clear()
    open = 0
    isOver = true
  }
}

/** Events for an interface: text as it streams, each call when it is complete, and the end of the turn. */
export function createAgentEvents(from: TaskState = emptyState): View<AgentEvent> {
  const follower = createFollower(from)
  const streamEvents = createStreamEvents(from)
  let text = ''

  return viewOf(event => {
    const texts = streamEvents(event).filter(part => part.type === 'TextDelta')
    if (isMessageEvent(event)) return [...texts, ...calls(event)]
    const isPart = isPartOfOther(follower, event)
    follower.follow(event)
    if (event.type === 'turn.started') text = ''
    return event.type === 'turn.finished' && !isPart ? [finished(event)] : []
  })

  function calls(event: MessageEvent): AgentEvent[] {
    const message = follower.followMessage(event)?.message
    if (message?.status === 'streaming' || message?.author !== 'agent') return []
    const { content, status, stopReason } = message
    // The text of `Done` is that of the last response; a text before a call is not part of it.
    if (content.type === 'text') text += content.text
    if (stopReason === 'tool_use') text = ''
    if (content.type !== 'tool_request' || status !== 'complete') return []
    return [{ type: 'ToolCall', name: content.name, summary: `${content.name} ${JSON.stringify(content.arguments)}` }]
  }

  function finished({ status, stopReason, error }: EventOf<'turn.finished'>): AgentEvent {
    return status === 'completed' ? { type: 'Done', text } : { type: 'Error', message: error?.message ?? stopReason }
  }
}

function textDelta(text: string): StreamEvent[] {
  return text === '' ? [] : [{ type: 'TextDelta', text }]
}

function callDelta(index: number, fragment: string): StreamEvent[] {
  return fragment === '' ? [] : [{ type: 'ToolCallDelta', index, arguments: fragment }]
}
