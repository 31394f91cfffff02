/**
 * A task as Agentex streams it: start, delta, full and done of task messages, at the indexes of the task.
 *
 * Each update carries its message as it was opened, so that a client can attribute any delta. Agentex has no delta for bytes and for a value
 * that is replaced: such a message ends with a full, which carries its whole content, instead of a done. After either, its index is complete.
 * A new attempt starts its indexes again. A handoff between agents is a full text without an index, as Agentex's hooks send it.
 */
import {
  type Author,
  type Content,
  type Delta,
  type EventOf,
  emptyState,
  isMessageEvent,
  isObject,
  type Json,
  type Message,
  type MessageEvent,
  startedInputs,
  type TaskState,
} from '@rivulet/protocol'
import { createFollower, type MessageChange, type View, viewOf } from './follower.ts'

export type TaskMessageUpdate = StreamTaskMessageStart | StreamTaskMessageDelta | StreamTaskMessageFull | StreamTaskMessageDone

export type StreamTaskMessageStart = Addressed & { type: 'start'; content: TaskMessageContent }
export type StreamTaskMessageDelta = Addressed & { type: 'delta'; delta: TaskMessageDelta }
/** The index is null for a handoff, which is no message of the task. */
export type StreamTaskMessageFull = Omit<Addressed, 'index'> & { type: 'full'; index: number | null; content: TaskMessageContent }
export type StreamTaskMessageDone = Addressed & { type: 'done' }

type Addressed = { index: number; parent_task_message: TaskMessage }

export type TaskMessage = {
  id: string
  task_id: string
  content: TaskMessageContent
  streaming_status: 'IN_PROGRESS' | 'DONE'
  created_at: string
}

export type TaskMessageContent = { author: Author } & (
  | { type: 'text'; content: string; format: 'plain' | 'markdown' | 'code' }
  | { type: 'data'; data: Json }
  | { type: 'tool_request'; tool_call_id: string; name: string; arguments: Json }
  | { type: 'tool_response'; tool_call_id: string; name: string; content: Json }
  | { type: 'reasoning'; summary: string[]; content: string[] }
)

export type TaskMessageDelta =
  | { type: 'text'; text_delta: string }
  | { type: 'data'; data_delta: string }
  | { type: 'tool_request'; tool_call_id: string; name: string; arguments_delta: string }
  | { type: 'tool_response'; tool_call_id: string; name: string; content_delta: string }
  | { type: 'reasoning_summary'; summary_index: number; summary_delta: string }
  | { type: 'reasoning_content'; content_index: number; content_delta: string }

/** Returns a function that takes each event of a task in order and returns its updates. */
export function createTaskMessageUpdates(from: TaskState = emptyState): View<TaskMessageUpdate> {
  const follower = createFollower(from)
  /** The open messages, as they were opened. `isBehind`: the client lacks a change for which Agentex has no delta. */
  const open = new Map<number, { parent: TaskMessage; isBehind: boolean }>()

  return viewOf(event => {
    if (isMessageEvent(event)) return messageChanged(event)
    follower.follow(event)
    if (event.type === 'custom') return event.name === 'agent.handoff' ? handedOff(event) : []
    return event.type === 'turn.started' ? began(event) : []
  })

  /** Each input is a complete message of the user. */
  function began(event: EventOf<'turn.started'>): TaskMessageUpdate[] {
    open.clear()
    return startedInputs(event).map(fullUpdate)
  }

  function handedOff({ task, at, data }: EventOf<'custom'>): TaskMessageUpdate[] {
    if (!isObject(data) || typeof data.from !== 'string' || typeof data.to !== 'string') return []
    const content: TaskMessageContent = {
      type: 'text',
      author: 'agent',
      content: `Handoff from ${data.from} to ${data.to}`,
      format: 'plain',
    }
    const created_at = new Date(at).toISOString()
    const parent: TaskMessage = { id: `${task}-handoff-${at}`, task_id: task, content, streaming_status: 'DONE', created_at }
    return [{ type: 'full', index: null, parent_task_message: parent, content }]
  }

  function messageChanged(event: MessageEvent): TaskMessageUpdate[] {
    const change = follower.followMessage(event)
    if (!change) return []
    switch (event.type) {
      case 'message.started':
        return started(change)
      case 'message.delta':
        return extended(event, change)
      case 'message.replaced':
      case 'message.finished':
        return closed(change, event.type === 'message.replaced')
      default:
        return event satisfies never
    }
  }

  function started({ message }: MessageChange): TaskMessageUpdate[] {
    const parent = taskMessageOf(message)
    const { index, content } = message
    const address = { index, parent_task_message: parent }
    open.set(index, { parent, isBehind: false })
    // The JSON text of an incomplete call or value is sent as a delta, because Agentex's contents have no field for it.
    const rest = 'raw' in content && content.raw ? deltaOf({ type: jsonDelta(content), text: content.raw }, content) : null
    return [{ type: 'start', ...address, content: parent.content }, ...(rest ? [{ type: 'delta', ...address, delta: rest } as const] : [])]
  }

  function extended({ index, delta: streamed }: EventOf<'message.delta'>, { before, message }: MessageChange): TaskMessageUpdate[] {
    const known = open.get(index) ?? { parent: taskMessageOf(before ?? message), isBehind: false }
    const delta = deltaOf(streamed, message.content)
    open.set(index, { ...known, isBehind: known.isBehind || (delta === null && streamed.type !== 'metadata') })
    return delta && !known.isBehind ? [{ type: 'delta', index, parent_task_message: known.parent, delta }] : []
  }

  function closed({ before, message }: MessageChange, isReplaced: boolean): TaskMessageUpdate[] {
    const { index } = message
    const { parent = taskMessageOf(before ?? message), isBehind = false } = open.get(index) ?? {}
    open.delete(index)
    return isReplaced || isBehind ? [fullUpdate(message)] : [{ type: 'done', index, parent_task_message: parent }]
  }
}

/** A message as Agentex stores it. */
export function taskMessageOf({ task, index, author, content, status, createdAt }: Message): TaskMessage {
  return {
    id: `${task}-${index}`,
    task_id: task,
    content: contentOf(author, content),
    streaming_status: status === 'streaming' ? 'IN_PROGRESS' : 'DONE',
    created_at: createdAt,
  }
}

function fullUpdate(message: Message): StreamTaskMessageFull {
  const parent = taskMessageOf(message)
  return { type: 'full', index: message.index, parent_task_message: parent, content: parent.content }
}

function contentOf(author: Author, content: Content): TaskMessageContent {
  switch (content.type) {
    case 'text':
      return { type: 'text', author, content: content.text, format: content.format }
    case 'data':
      return { type: 'data', author, data: content.data }
    case 'tool_request':
      return { type: 'tool_request', author, tool_call_id: content.callId, name: content.name, arguments: content.arguments }
    case 'tool_response':
      return { type: 'tool_response', author, tool_call_id: content.callId, name: content.name, content: content.content }
    case 'reasoning':
      return { type: 'reasoning', author, summary: content.summary, content: content.content }
    case 'media': {
      const { mimeType, data, url } = content
      return { type: 'data', author, data: { mime_type: mimeType, data: data ?? null, url: url ?? null } }
    }
    default:
      return content satisfies never
  }
}

function deltaOf(delta: Delta, content: Content): TaskMessageDelta | null {
  switch (delta.type) {
    case 'text':
      return { type: 'text', text_delta: delta.text }
    case 'reasoning_summary':
      return { type: 'reasoning_summary', summary_index: delta.index, summary_delta: delta.text }
    case 'reasoning_content':
      return { type: 'reasoning_content', content_index: delta.index, content_delta: delta.text }
    case 'data_json':
      return { type: 'data', data_delta: delta.text }
    case 'tool_request':
      return content.type === 'tool_request' ? { type: 'tool_request', ...callOf(content), arguments_delta: delta.text } : null
    case 'tool_response':
      return content.type === 'tool_response' ? { type: 'tool_response', ...callOf(content), content_delta: delta.text } : null
    case 'data':
    case 'media':
    case 'metadata':
      return null
    default:
      return delta satisfies never
  }
}

function jsonDelta({ type }: Content): 'tool_request' | 'data_json' {
  return type === 'tool_request' ? type : 'data_json'
}

function callOf({ callId, name }: { callId: string; name: string }): { tool_call_id: string; name: string } {
  return { tool_call_id: callId, name }
}
