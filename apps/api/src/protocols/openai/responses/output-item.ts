/**
 * The messages of a turn as the output items of OpenAI's Responses.
 *
 * A call that the agent makes is an `mcp_call`, because clients try to run a `function_call` themselves; its response is a part of it. Items are a
 * function of the messages, so a stream, a response that is read later, and the rows have the same ones.
 */
import { type ContentOf, type Json, type Message, type TaskId, taskIdSchema, type Wait, type WaitId, waitIdSchema } from '@rivulet/protocol'
import { createCalls } from '@rivulet/views/ai-sdk'
import type { Range } from './segment.ts'

/** The server of tools that the agent runs itself. */
export const serverLabel = 'rivulet'

type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

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
  server_label: typeof serverLabel
  name: string
  arguments: string
  output: string | null
  error: { type: 'mcp_tool_execution_error'; content: Json } | null
  status: ItemStatus | 'failed'
}

type ImageItem = { id: string; type: 'image_generation_call'; status: ItemStatus; result: string | null }

export type Item = TextItem | ReasoningItem | CallItem | ImageItem

/** A question of a turn: an approval, or a call that the client runs or that a person responds to. */
export type QuestionItem =
  | { id: string; type: 'mcp_approval_request'; server_label: typeof serverLabel; name: string; arguments: string }
  | { id: string; type: 'function_call'; call_id: string; name: string; arguments: string; status: 'completed' }

/** The source of an item: a message, and for a call the message that responds to it. */
export type ItemSource = { message: Message; response?: Message | undefined }

/** The items of a segment, in the order of its messages. `isOver`: nothing follows, so a call without a response stays without one. */
export function outputOf(messages: readonly Message[], range: Range, isOver: boolean): Item[] {
  return sourcesOf(messages, range).map(source => itemOf(source, isOver))
}

/** In order of index. The input of the turn is not a part of its output. `messages` are those of the whole turn. */
export function sourcesOf(messages: readonly Message[], range: Range): ItemSource[] {
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
  return [...sources.values()].filter(source => isWithin(source, range))
}

/** A call belongs to the segment that has its response, and without one to the last: a call that has to be approved is made after that. */
function isWithin({ message, response }: ItemSource, { from, to }: Range): boolean {
  const index = message.content.type === 'tool_request' ? response?.index : message.index
  return index === undefined ? to === null : index >= from && (to === null || index < to)
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

/** The name of the call that asks a person for something. */
const askName = 'ask'

export function questionItem({ task, id, kind, name, title, detail, schema, tool, arguments: args }: Wait): QuestionItem {
  const key = formatQuestionId({ task, wait: id })
  const asked = { message: detail === undefined ? title : `${title}\n\n${detail}`, ...(schema && { schema }) }
  const given = JSON.stringify(args ?? asked)
  if (kind === 'approval')
    return { id: `mcpr_${key}`, type: 'mcp_approval_request', server_label: serverLabel, name: tool ?? name, arguments: given }
  const call = kind === 'form' ? { name: askName, arguments: JSON.stringify(asked) } : { name: tool ?? name, arguments: given }
  return { id: `fc_${key}`, type: 'function_call', call_id: `call_${key}`, ...call, status: 'completed' }
}

export type QuestionId = { task: TaskId; wait: WaitId }

function formatQuestionId({ task, wait }: QuestionId): string {
  return `${task}.${wait}`
}

/** Parses the `approval_request_id` or the `call_id` of a response; null for an id that is not ours. */
export function parseQuestionId(text: string): QuestionId | null {
  const [, task = '', wait = ''] = /^(?:mcpr|call)_([^.]{36})\.([^.]{36})$/.exec(text) ?? []
  const [known, asked] = [taskIdSchema.safeParse(task), waitIdSchema.safeParse(wait)]
  return known.success && asked.success ? { task: known.data, wait: asked.data } : null
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
    ...{ id: idOf('mcp', message), type: 'mcp_call', server_label: serverLabel, name: content.name },
    arguments: content.type === 'tool_request' ? argumentsOf(message, content) : '{}',
    output: answer && !answer.isError ? text : null,
    error: answer?.isError ? { type: 'mcp_tool_execution_error', content: answer.content } : null,
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
