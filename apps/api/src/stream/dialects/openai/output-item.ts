/**
 * The messages of a turn as the output items of OpenAI's Responses.
 *
 * A call that the agent makes is an `mcp_call`, because clients try to run a `function_call` themselves; its response is a part of it. Items are a
 * function of the messages, so a stream, a response that is read later, and the rows have the same ones.
 */
import type { ContentOf, Json, Message } from '@rivulet/protocol'
import { createCalls } from '@rivulet/views/ai-sdk'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

export type Annotation = { type: 'url_citation'; url: string; title: string; start_index: number; end_index: number }

export type TextItem = {
  id: string
  type: 'message'
  role: 'assistant'
  status: ItemStatus
  content: { type: 'output_text'; text: string; annotations: Annotation[] }[]
}

export type ReasoningItem = {
  id: string
  type: 'reasoning'
  status: ItemStatus
  summary: { type: 'summary_text'; text: string }[]
  content: { type: 'reasoning_text'; text: string }[]
}

export type CallItem = {
  id: string
  type: 'mcp_call'
  server_label: 'rivulet'
  name: string
  arguments: string
  output: string | null
  error: string | null
  status: ItemStatus | 'failed'
}

export type ImageItem = { id: string; type: 'image_generation_call'; status: ItemStatus; result: string | null }

export type Item = TextItem | ReasoningItem | CallItem | ImageItem

/** What an item is made of: a message, and for a call the message that responds to it. */
export type ItemSource = { message: Message; response?: Message | undefined }

/** The items of a turn, in the order of its messages. `isOver`: nothing follows, so a call without a response stays without one. */
export function outputOf(messages: readonly Message[], isOver: boolean): Item[] {
  return sourcesOf(messages).map(source => itemOf(source, isOver))
}

/** In order of index. The input of the turn is not a part of its output. */
export function sourcesOf(messages: readonly Message[]): ItemSource[] {
  const calls = createCalls()
  const sources = new Map<string | number, ItemSource>()
  for (const given of messages) {
    if (given.author === 'user') continue
    const message = calls.own(given)
    const { content } = message
    if (content.type === 'tool_request') sources.set(content.callId, { message })
    else if (content.type !== 'tool_response') sources.set(given.index, { message })
    else sources.set(content.callId, { message: sources.get(content.callId)?.message ?? message, response: message })
  }
  return [...sources.values()]
}

export function itemOf({ message, response }: ItemSource, isOver: boolean): Item {
  const { content } = message
  const status = statusOf(message)
  switch (content.type) {
    case 'text':
      return textItem(message, content.text)
    case 'data':
      return textItem(message, JSON.stringify(content.data))
    case 'reasoning':
      return {
        ...{ id: idOf('rs', message), type: 'reasoning', status },
        summary: content.summary.map(text => ({ type: 'summary_text', text })),
        content: content.content.map(text => ({ type: 'reasoning_text', text })),
      }
    case 'media':
      return content.data !== undefined && content.mimeType.startsWith('image/')
        ? { id: idOf('ig', message), type: 'image_generation_call', status, result: content.data }
        : textItem(message, JSON.stringify(content))
    case 'tool_request':
    case 'tool_response':
      return callItem(message, content, response, isOver)
    default:
      return content satisfies never
  }
}

/** Whether nothing of an item changes any more. */
export function isClosed({ message, response }: ItemSource): boolean {
  if (message.status === 'streaming') return false
  return message.content.type !== 'tool_request' || (response !== undefined && response.status !== 'streaming')
}

function textItem(message: Message, text: string): TextItem {
  const part = { type: 'output_text' as const, text, annotations: annotationsOf(message.metadata, text) }
  return { id: idOf('msg', message), type: 'message', role: 'assistant', status: statusOf(message), content: [part] }
}

function callItem(
  message: Message,
  content: ContentOf<'tool_request' | 'tool_response'>,
  response: Message | undefined,
  isOver: boolean,
): CallItem {
  const answer = response?.content.type === 'tool_response' && response.status !== 'streaming' ? response.content : null
  const text = answer && textOf(answer.content)
  const isComplete = answer !== null && response?.status === 'complete'
  const ended = answer?.isError ? 'failed' : isComplete ? 'completed' : 'incomplete'
  return {
    ...{ id: idOf('mcp', message), type: 'mcp_call', server_label: 'rivulet', name: content.name },
    arguments: content.type === 'tool_request' ? argumentsOf(message, content) : '{}',
    output: answer && !answer.isError ? text : null,
    error: answer?.isError ? text : null,
    status: answer || isOver ? ended : 'in_progress',
  }
}

/** While a call is open, the fragments of its JSON; they begin the text that it has in the end, or are replaced by it. */
function argumentsOf({ status }: Message, { arguments: value, raw }: ContentOf<'tool_request'>): string {
  return raw ?? (status === 'streaming' ? '' : JSON.stringify(value))
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function annotationsOf({ citations }: Message['metadata'], text: string): Annotation[] {
  const known = Array.isArray(citations) ? citations : []
  return known.flatMap((citation): Annotation[] => {
    if (typeof citation !== 'object' || citation === null || Array.isArray(citation) || typeof citation.url !== 'string') return []
    const title = typeof citation.title === 'string' ? citation.title : citation.url
    return [{ type: 'url_citation', url: citation.url, title, start_index: 0, end_index: text.length }]
  })
}

function statusOf({ status }: Message): ItemStatus {
  return status === 'streaming' ? 'in_progress' : status === 'complete' ? 'completed' : 'incomplete'
}

/** The type is a part of the id, because a message that is replaced may become an item of another type, which a client takes for another one. */
function idOf(type: 'msg' | 'rs' | 'ig' | 'mcp', { task, index, attempt }: Message): string {
  return `${type}_${task}.${index}.${attempt}`
}
