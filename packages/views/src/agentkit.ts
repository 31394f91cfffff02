/**
 * A task in agentkit's event model: the stream as its six deltas, and stored messages as items of parts.
 *
 * A part is a message; its id is `p` and the message's index. The content that a message starts with is appended like the rest, so the deltas
 * alone rebuild the part, and the commit carries the whole part. A tool call that did not complete is never committed, so that no consumer
 * acts on it. A new attempt begins its parts again.
 */
import {
  type Content,
  type ContentOf,
  emptyState,
  isMessageEvent,
  isTextDelta,
  type Json,
  type JsonObject,
  type Message,
  type Delta as MessageDelta,
  type MessageEvent,
  type TaskState,
} from '@rivulet/protocol'
import { createFollower, type View, viewOf } from './follower.ts'

export type Delta =
  | { type: 'BeginPart'; part_id: string; kind: PartKind }
  | { type: 'AppendText'; part_id: string; chunk: string }
  /** The chunk is base64, because deltas are sent as JSON. */
  | { type: 'AppendBytes'; part_id: string; chunk: string }
  | { type: 'ReplaceStructured'; part_id: string; value: Json }
  | { type: 'SetMetadata'; part_id: string; metadata: JsonObject }
  | { type: 'CommitPart'; part: Part }

export type PartKind = 'Text' | 'Reasoning' | 'ToolCall' | 'ToolResult' | 'Structured' | 'Media'

export type Part = { metadata: JsonObject } & (
  | { kind: 'Text'; text: string }
  | { kind: 'Reasoning'; summary: string | null; content: string | null }
  | { kind: 'ToolCall'; id: string; name: string; input: Json }
  | { kind: 'ToolResult'; call_id: string; output: Json; is_error: boolean }
  | { kind: 'Structured'; value: Json }
  | { kind: 'Media'; modality: 'Audio' | 'Image' | 'Video' | 'Binary'; mime_type: string; data: string | null; url: string | null }
)

export type Item = { kind: 'System' | 'User' | 'Assistant' | 'Tool'; parts: Part[] }

/** Returns a function that takes each event of a task in order and returns its deltas. */
export function createDeltas(from: TaskState = emptyState): View<Delta> {
  const follower = createFollower(from)

  return viewOf(event => {
    if (isMessageEvent(event)) return deltasOf(event)
    follower.follow(event)
    return []
  })

  function deltasOf(event: MessageEvent): Delta[] {
    const change = follower.followMessage(event)
    if (!change) return []
    const { before, message } = change
    const part_id = partId(message)
    switch (event.type) {
      case 'message.started':
        return begin(part_id, message)
      case 'message.delta':
        return extend(part_id, event.delta, message.content)
      case 'message.replaced':
        return [...(before ? [] : begin(part_id, message)), ...commit(message)]
      case 'message.finished':
        return commit(message)
      default:
        return event satisfies never
    }
  }
}

/** The stored transcript: committed parts only. Consecutive parts of one kind and turn are one item. */
export function itemsOf(messages: readonly Message[]): Item[] {
  const items: (Item & { turnNumber: number })[] = []
  for (const message of messages.filter(isCommitted)) {
    const kind = itemKind(message)
    const last = items.at(-1)
    if (last?.kind === kind && last.turnNumber === message.turn) last.parts.push(partOf(message))
    else items.push({ kind, turnNumber: message.turn, parts: [partOf(message)] })
  }
  return items.map(({ kind, parts }) => ({ kind, parts }))
}

function begin(part_id: string, { content, metadata }: Message): Delta[] {
  const described: Delta[] = Object.keys(metadata).length > 0 ? [{ type: 'SetMetadata', part_id, metadata }] : []
  return [{ type: 'BeginPart', part_id, kind: kindOf(content) }, ...described, ...base(part_id, content)]
}

/** The deltas for the content that a part starts with. */
function base(part_id: string, content: Content): Delta[] {
  switch (content.type) {
    case 'text':
      return append(part_id, content.text)
    case 'reasoning':
      return append(part_id, [...content.summary, ...content.content].join(''))
    case 'tool_request':
      return append(part_id, content.raw ?? '')
    case 'tool_response':
      return append(part_id, typeof content.content === 'string' ? content.content : '')
    case 'data':
      return content.data === null ? [] : [{ type: 'ReplaceStructured', part_id, value: content.data }]
    case 'media':
      return content.data ? [{ type: 'AppendBytes', part_id, chunk: content.data }] : []
    default:
      return content satisfies never
  }
}

function extend(part_id: string, delta: MessageDelta, content: Content): Delta[] {
  if (delta.type === 'metadata') return [{ type: 'SetMetadata', part_id, metadata: delta.metadata }]
  if (delta.type === 'media') return [{ type: 'AppendBytes', part_id, chunk: delta.bytes }]
  if (delta.type === 'data') return [{ type: 'ReplaceStructured', part_id, value: delta.value }]
  // Incomplete JSON text cannot replace a value; the value comes with the commit.
  return isTextDelta(delta) && content.type !== 'data' ? append(part_id, delta.text) : []
}

function append(part_id: string, chunk: string): Delta[] {
  return chunk === '' ? [] : [{ type: 'AppendText', part_id, chunk }]
}

function commit(message: Message): Delta[] {
  return isCommitted(message) ? [{ type: 'CommitPart', part: partOf(message) }] : []
}

function isCommitted({ content, status }: Message): boolean {
  return status === 'complete' || (status !== 'streaming' && content.type !== 'tool_request')
}

function partOf({ content, metadata }: Message): Part {
  switch (content.type) {
    case 'text':
      return { kind: 'Text', text: content.text, metadata }
    case 'reasoning':
      return { kind: 'Reasoning', summary: content.summary.join('') || null, content: content.content.join('') || null, metadata }
    case 'tool_request':
      return { kind: 'ToolCall', id: content.callId, name: content.name, input: content.arguments, metadata }
    case 'tool_response':
      return { kind: 'ToolResult', call_id: content.callId, output: content.content, is_error: content.isError, metadata }
    case 'data':
      return { kind: 'Structured', value: content.data, metadata }
    case 'media':
      return mediaPart(content, metadata)
    default:
      return content satisfies never
  }
}

function mediaPart({ mimeType, data, url }: ContentOf<'media'>, metadata: JsonObject): Part {
  const modalities = { audio: 'Audio', image: 'Image', video: 'Video' } as const
  const family = mimeType.split('/')[0] ?? ''
  const modality = family in modalities ? modalities[family as keyof typeof modalities] : 'Binary'
  return { kind: 'Media', modality, mime_type: mimeType, data: data ?? null, url: url ?? null, metadata }
}

function kindOf(content: Content): PartKind {
  const kinds = {
    text: 'Text',
    reasoning: 'Reasoning',
    tool_request: 'ToolCall',
    tool_response: 'ToolResult',
    data: 'Structured',
    media: 'Media',
  } as const
  return kinds[content.type]
}

function itemKind({ author, content }: Message): Item['kind'] {
  if (author !== 'agent') return author === 'user' ? 'User' : 'System'
  return content.type === 'tool_response' ? 'Tool' : 'Assistant'
}

function partId({ index }: Message): string {
  return `p${index}`
}
