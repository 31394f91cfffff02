/**
 * Messages as the chunks of the AI SDK's UI message stream: how one opens, grows and closes there. Pure.
 *
 * A text is the part with the message's index for its id; a reasoning has one part for each of its summaries and contents. A tool call and its
 * response are one part, known by the call's own id (`createCalls`): tools are the agent's own, so the client is told that it knows them only by name (`dynamic`) and
 * has nothing to execute (`providerExecuted`). JSON and media are said when they are whole.
 */
import { type ContentOf, type Delta, isTextDelta, type Json, type Message } from '@rivulet/protocol'

export type UiChunk = { type: string; [field: string]: unknown }

/** Of a tool's response, while it runs: a longer one is said when it is whole, because each time all of it is said. */
const maxPreliminaryLength = 16 * 1024

/** A message as it stands, to somebody who has heard nothing of it. */
export function wholeOf(message: Message): UiChunk[] {
  if (message.status === 'streaming') return openingOf(message)
  const { type } = message.content
  const isInOnePiece = type === 'tool_request' || type === 'tool_response' || type === 'data' || type === 'media'
  return isInOnePiece ? closingOf(message) : [...openingOf(message), ...closingOf(message)]
}

export function openingOf({ index, content, metadata }: Message): UiChunk[] {
  const sources = sourcesOf(index, metadata)
  switch (content.type) {
    case 'text':
      return [{ type: 'text-start', id: String(index) }, ...grown('text', String(index), content.text), ...sources]
    case 'reasoning':
      return reasoningParts(index, content).flatMap(([id, said]) => [{ type: 'reasoning-start', id }, ...grown('reasoning', id, said)])
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

/** What a delta adds, or null where nothing but a reset does; `before` is the message that it was added to, `after` what became of it. */
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
      // Of one that did not complete, the value that it had.
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

/** What turns one message into another at the same place, or null where nothing but a reset does. */
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

/** Announces a call that nobody asked for in this turn, so that its response has a place. */
export function madeUpCall({ callId, name }: ContentOf<'tool_response'>): UiChunk {
  return { type: 'tool-input-available', toolCallId: callId, toolName: name, input: {}, ...ours }
}

const ours = { dynamic: true, providerExecuted: true }

function grown(kind: 'text' | 'reasoning', id: string, delta: string): UiChunk[] {
  return delta === '' ? [] : [{ type: `${kind}-delta`, id, delta }]
}

export function reasoningParts(index: number, { summary, content }: ContentOf<'reasoning'>): [id: string, said: string][] {
  const partsOf = (kind: string, parts: string[]) =>
    parts.flatMap((said, place): [string, string][] => (said === '' ? [] : [[`${index}.${kind}.${place}`, said]]))
  return [...partsOf('summary', summary), ...partsOf('content', content)]
}

function dataPart(index: number, data: Json): UiChunk {
  return { type: 'data-json', id: String(index), data }
}

function preliminary({ callId: toolCallId, content: output }: ContentOf<'tool_response'>): UiChunk[] {
  if (textOf(output).length > maxPreliminaryLength) return []
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

/** What a text cites beyond what it did; null where it no longer cites all of that. */
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
