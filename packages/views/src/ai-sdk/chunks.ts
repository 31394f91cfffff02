/**
 * Messages as chunks of the AI SDK's UI message stream: the chunks that open, extend and close each message. Pure.
 *
 * A text is one part, with the message's index as its id; a reasoning has one part for each of its summaries and contents. A tool call and its
 * response are one part, with the id of `createCalls`. Tools run in the agent, so calls are marked `dynamic` (the client has no type for them)
 * and `providerExecuted` (the client does not run them). JSON and media are sent when they are complete.
 */
import { type Content, type ContentOf, type Delta, isTextDelta, type Json, type Message } from '@rivulet/protocol'

export type UiChunk = { type: string; [field: string]: unknown }

/** A longer response of a running tool is sent only when it is complete, because each preliminary chunk repeats the whole response. */
const maxPreliminaryLength = 16 * 1024

/** The closing chunks of these contents have all of them. */
const isInOnePiece: Record<Content['type'], boolean> = {
  text: false,
  reasoning: false,
  tool_request: true,
  tool_response: true,
  data: true,
  media: true,
}

/** The chunks of a message in its current state, for a client that has none of it. */
export function wholeOf(message: Message): UiChunk[] {
  if (message.status === 'streaming') return openingOf(message)
  return isInOnePiece[message.content.type] ? closingOf(message) : [...openingOf(message), ...closingOf(message)]
}

export function openingOf({ index, content, metadata }: Message): UiChunk[] {
  const sources = sourcesOf(index, metadata)
  switch (content.type) {
    case 'text':
      return [{ type: 'text-start', id: String(index) }, ...grown('text', String(index), content.text), ...sources]
    case 'reasoning':
      return reasoningParts(index, content).flatMap(([id, text]) => [{ type: 'reasoning-start', id }, ...grown('reasoning', id, text)])
    case 'data':
      return content.data === null || content.raw !== undefined ? [] : [dataPart(index, content.data)]
    case 'tool_request': {
      const { callId: toolCallId, name: toolName, raw } = content
      const started = { type: 'tool-input-start', toolCallId, toolName, ...ours }
      return raw ? [started, { type: 'tool-input-delta', toolCallId, inputTextDelta: raw }] : [started]
    }
    case 'tool_response':
      return content.content === null ? [] : preliminary(content)
    case 'media':
      return []
    default:
      return content satisfies never
  }
}

/** The chunks of a delta that changed the message `before` to `after`, or null when the stream must be reset. */
export function growthOf(before: Message, after: Message, delta: Delta): UiChunk[] | null {
  const { index, content } = after
  if (delta.type === 'metadata') return newSources(before, after)
  if (content.type === 'tool_response') return preliminary(content)
  if (delta.type === 'data') return [dataPart(index, delta.value)]
  if (!isTextDelta(delta)) return []
  switch (delta.type) {
    case 'text':
      return grown('text', String(index), delta.text)
    case 'reasoning_summary':
    case 'reasoning_content': {
      const kind = delta.type === 'reasoning_summary' ? 'summary' : 'content'
      const id = `${index}.${kind}.${delta.index}`
      const isNew = before.content.type === 'reasoning' && !before.content[kind][delta.index]
      return [...(isNew ? [{ type: 'reasoning-start', id }] : []), ...grown('reasoning', id, delta.text)]
    }
    case 'tool_request':
      return content.type === 'tool_request' ? [{ type: 'tool-input-delta', toolCallId: content.callId, inputTextDelta: delta.text }] : []
    case 'data_json':
    case 'tool_response':
      return []
    default:
      return delta satisfies never
  }
}

export function closingOf({ index, content, status, error }: Message): UiChunk[] {
  switch (content.type) {
    case 'text':
      return [{ type: 'text-end', id: String(index) }]
    case 'reasoning':
      return reasoningParts(index, content).map(([id]) => ({ type: 'reasoning-end', id }))
    case 'data':
      // A message that did not complete keeps the value it had.
      return status === 'complete' || (content.data !== null && content.raw === undefined) ? [dataPart(index, content.data)] : []
    case 'tool_request': {
      const call = { toolCallId: content.callId, toolName: content.name, ...ours }
      if (status === 'complete') return [{ type: 'tool-input-available', ...call, input: content.arguments }]
      const errorText = error?.message ?? `The call was ${status}`
      return [{ type: 'tool-input-error', ...call, input: content.raw ?? content.arguments, errorText }]
    }
    case 'tool_response': {
      const { callId: toolCallId, content: output, isError } = content
      if (status === 'complete' && !isError) return [{ type: 'tool-output-available', toolCallId, output, ...ours }]
      const errorText = status === 'complete' ? textOf(output) : (error?.message ?? `The tool was ${status}`)
      return [{ type: 'tool-output-error', toolCallId, errorText, ...ours }]
    }
    case 'media':
      return status === 'complete' ? [{ type: 'file', mediaType: content.mimeType, url: content.url ?? dataUrl(content) }] : []
    default:
      return content satisfies never
  }
}

/** The chunks that change one message into another at the same index, or null when the stream must be reset. */
export function replacementOf(before: Message, after: Message): UiChunk[] | null {
  const [old, content] = [before.content, after.content]
  if (old.type === 'text' && content.type === 'text' && content.text.startsWith(old.text)) {
    const sources = newSources(before, after)
    return sources && [...grown('text', String(after.index), content.text.slice(old.text.length)), ...sources, ...closingOf(after)]
  }
  const isSameCall = 'callId' in old && 'callId' in content && old.callId === content.callId && old.name === content.name
  if (old.type === content.type && (isSameCall || content.type === 'data' || content.type === 'media')) return closingOf(after)
  return null
}

/** A call for a response without one in this turn, so that the SDK accepts the response. */
export function madeUpCall({ callId, name }: ContentOf<'tool_response'>): UiChunk {
  return { type: 'tool-input-available', toolCallId: callId, toolName: name, input: {}, ...ours }
}

const ours = { dynamic: true, providerExecuted: true }

function grown(kind: 'text' | 'reasoning', id: string, delta: string): UiChunk[] {
  return delta === '' ? [] : [{ type: `${kind}-delta`, id, delta }]
}

export function reasoningParts(index: number, { summary, content }: ContentOf<'reasoning'>): [id: string, text: string][] {
  const partsOf = (kind: string, parts: string[]) =>
    parts.flatMap((text, place): [string, string][] => (text === '' ? [] : [[`${index}.${kind}.${place}`, text]]))
  return [...partsOf('summary', summary), ...partsOf('content', content)]
}

function dataPart(index: number, data: Json): UiChunk {
  return { type: 'data-json', id: String(index), data }
}

/** An error is no output: the close sends it. */
function preliminary({ callId: toolCallId, content: output, isError }: ContentOf<'tool_response'>): UiChunk[] {
  if (isError || textOf(output).length > maxPreliminaryLength) return []
  return [{ type: 'tool-output-available', toolCallId, output, preliminary: true, ...ours }]
}

function dataUrl({ mimeType, data = '' }: ContentOf<'media'>): string {
  return `data:${mimeType};base64,${data}`
}

export function sourcesOf(index: number, { citations }: Message['metadata']): UiChunk[] {
  const known = Array.isArray(citations) ? citations : []
  return known.flatMap((citation, place): UiChunk[] => {
    if (typeof citation !== 'object' || citation === null || Array.isArray(citation)) return []
    const { url, title, mediaType, filename } = citation
    const sourceId = `${index}.${place}`
    const named = typeof title === 'string' ? { title } : {}
    if (typeof url === 'string') return [{ type: 'source-url', sourceId, url, ...named }]
    if (typeof mediaType !== 'string') return []
    return [{ type: 'source-document', sourceId, mediaType, title: '', ...named, ...(typeof filename === 'string' && { filename }) }]
  })
}

/** The sources that were added to a text, or null when an earlier source was removed or changed. */
function newSources({ metadata: old }: Message, { index, metadata, content }: Message): UiChunk[] | null {
  if (content.type !== 'text') return []
  const known = sourcesOf(index, old)
  const sources = sourcesOf(index, metadata)
  const isMore = JSON.stringify(known) === JSON.stringify(sources.slice(0, known.length))
  return isMore ? sources.slice(known.length) : null
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
