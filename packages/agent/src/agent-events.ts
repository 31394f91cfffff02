/**
 * A run as domain events in the vocabulary of coding agents, for interfaces and logs that speak it. A pure view: the same updates give the same
 * events, each tool event carries the id of its call, and nothing is said that the updates do not say.
 *
 * A turn here is one response of the model with the execution of its calls, so `turn_finished` follows those and still says `toolUse`.
 */
import type { ContentOf, Json, StopReason, Update, UpdateOf } from '@rivulet/protocol'
import { createTranscript } from './transcript.ts'

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
  | { type: 'aborted' }
  | { type: 'turn_finished'; message: AssistantMessage }

/** Answers a function that is given each update in order, and says which events it makes. */
export function createAgentEvents(): (update: Update) => AgentEvent[] {
  const transcript = createTranscript()
  let turn = emptyTurn()
  return eventsOf

  function eventsOf(update: Update): AgentEvent[] {
    transcript.add(update)
    switch (update.type) {
      case 'start':
        return started(update)
      case 'delta':
        return extended(update)
      case 'full':
      case 'done':
        return closed(update)
      case 'custom':
        return []
      default:
        return update satisfies never
    }
  }

  function started({ content }: UpdateOf<'start'>): AgentEvent[] {
    if (content.type === 'tool_response') return [{ type: 'tool_execution_started', id: content.callId, name: content.name }]
    if (content.type !== 'tool_request') return []
    turn.unanswered += 1
    return [{ type: 'tool_call_started', id: content.callId, name: content.name }]
  }

  function extended({ index, delta }: UpdateOf<'delta'>): AgentEvent[] {
    const content = transcript.messageAt(index)?.content
    if (delta.type === 'text') return [{ type: 'assistant_text_delta', text: delta.text }]
    if (content?.type === 'tool_request' && delta.type === 'tool_request')
      return [{ type: 'tool_call_arguments_delta', id: content.callId, delta: delta.text }]
    if (content?.type !== 'tool_response') return []
    if (delta.type === 'tool_response') return [{ type: 'tool_execution_update', id: content.callId, text: delta.text }]
    return delta.type === 'data' ? [{ type: 'tool_execution_update', id: content.callId, text: JSON.stringify(delta.value) }] : []
  }

  function closed(update: UpdateOf<'full' | 'done'>): AgentEvent[] {
    const message = transcript.messageAt(update.index)
    if (!message) return []
    const { content, status, stopReason } = message
    if (content.type === 'tool_response') return answered(content, status !== 'complete')
    if (content.type === 'text') turn.text += content.text
    const ready = content.type === 'tool_request' && status === 'complete' ? readyCall(content) : []
    if (stopReason) turn.stopReason = stopReason
    return [...ready, ...(stopReason === 'aborted' ? [{ type: 'aborted' } as const] : []), ...finishTurn()]
  }

  function readyCall({ callId: id, name, arguments: input }: ContentOf<'tool_request'>): AgentEvent[] {
    turn.toolCalls.push({ id, name, input })
    return [{ type: 'tool_call_ready', id, name, input }]
  }

  function answered({ callId, isError }: ContentOf<'tool_response'>, isUnfinished: boolean): AgentEvent[] {
    turn.unanswered -= 1
    return [{ type: 'tool_execution_finished', id: callId, isError: isError || isUnfinished }, ...finishTurn()]
  }

  function finishTurn(): AgentEvent[] {
    if (!turn.stopReason || turn.unanswered > 0) return []
    const { text, toolCalls, stopReason } = turn
    turn = emptyTurn()
    return [{ type: 'turn_finished', message: { text, toolCalls, stopReason: nameOf(stopReason) } }]
  }
}

type OpenTurn = Omit<AssistantMessage, 'stopReason'> & { stopReason: StopReason | null; unanswered: number }

function emptyTurn(): OpenTurn {
  return { text: '', toolCalls: [], stopReason: null, unanswered: 0 }
}

function nameOf(reason: StopReason): AgentStopReason {
  if (reason === 'tool_use') return 'toolUse'
  return reason === 'content_filter' ? 'contentFilter' : reason
}
