/**
 * A second, plain implementation of the rules for one turn: it keeps all text and joins it at the end. It shares no code with the composer and
 * the accumulator, so that tests can compare both with it.
 */
import type { ContentType } from '../src/entities/content.ts'
import type { DeltaType } from '../src/events/delta.ts'
import type { Content, Delta, Json, JsonObject, Message, Update } from '../src/index.ts'

type PlainMessage = Pick<Message, 'index' | 'status' | 'content' | 'metadata'>

export type PlainTurn = {
  /** `accepted`, `discarded`, or the code of the expected error. */
  apply(update: Update): string
  close(status: 'complete' | 'failed' | 'aborted'): void
  messages(): PlainMessage[]
}

type Draft = PlainMessage & { texts: Map<string, string>; bytes: string }

const accepts: Record<ContentType, DeltaType[]> = {
  text: ['text'],
  reasoning: ['reasoning_summary', 'reasoning_content'],
  data: ['data_json', 'data'],
  tool_request: ['tool_request'],
  tool_response: ['tool_response', 'data'],
  media: ['media'],
}

export function createPlainTurn({ turnBytes }: { turnBytes: number }): PlainTurn {
  const drafts: Draft[] = []
  return { apply, close, messages: () => drafts.map(({ index, status, content, metadata }) => ({ index, status, content, metadata })) }

  function apply(update: Update): string {
    if (update.type === 'custom') return 'accepted'
    const { index } = update
    const message = drafts[index]
    if (message && message.status !== 'streaming') return 'discarded'
    if (message ? update.type === 'start' : update.type === 'done') return 'discarded'
    if (!message && index !== drafts.length) return 'index_out_of_order'
    if (update.type === 'start') open(index, update.content, update.metadata)
    if (update.type === 'delta') return extend(message, index, update.delta)
    if (update.type === 'done' && message) finish(message, update.status ?? 'complete')
    if (update.type === 'full') {
      const { content, metadata = message?.metadata } = update
      drafts[index] = { ...newMessage(index, content, metadata), status: 'complete' }
    }
    return 'accepted'
  }

  function extend(known: Draft | undefined, index: number, delta: Delta): string {
    if (known && !fits(known, delta)) return 'delta_type_mismatch'
    if ('text' in delta && delta.text.length > turnBytes) return 'output_too_large'
    if (('text' in delta && delta.text === '') || ('bytes' in delta && delta.bytes === '')) return 'accepted'
    const message = known ?? open(index, emptyOf(firstTypeOf(delta)))
    if (delta.type === 'metadata') message.metadata = storable(delta.metadata)
    else if (delta.type === 'media') message.bytes += atob(delta.bytes)
    else if (delta.type === 'data') replaceValue(message, storable(delta.value))
    else message.texts.set(channel(delta), (message.texts.get(channel(delta)) ?? '') + delta.text)
    return 'accepted'
  }

  function close(status: 'complete' | 'failed' | 'aborted'): void {
    for (const message of drafts) if (message.status === 'streaming') finish(message, status)
  }

  function open(index: number, content: Content, metadata?: JsonObject): Draft {
    const message = newMessage(index, content, metadata)
    drafts[index] = message
    return message
  }
}

function newMessage(index: number, given: Content, metadata: JsonObject = {}): Draft {
  const content = storable(given)
  const bytes = content.type === 'media' ? atob(content.data ?? '') : ''
  return { index, status: 'streaming', content, metadata: storable(metadata), texts: new Map(), bytes }
}

function fits({ content, texts }: Draft, delta: Delta): boolean {
  if (delta.type === 'metadata') return true
  if (!accepts[content.type].includes(delta.type)) return false
  if (delta.type !== 'tool_response' || content.type !== 'tool_response' || texts.size > 0) return true
  return content.content === null || typeof content.content === 'string'
}

function replaceValue(message: Draft, value: Json): void {
  const { content } = message
  message.texts.clear()
  if (content.type === 'data') message.content = { ...content, data: value }
  if (content.type === 'tool_response') message.content = { ...content, content: value }
}

function finish(message: Draft, status: Message['status']): void {
  const { content, texts } = message
  message.status = status
  if (content.type === 'text') message.content = { ...content, text: content.text + wellFormed(texts.get('text') ?? '') }
  if (content.type === 'media') message.content = { ...content, data: btoa(message.bytes) }
  if (content.type === 'reasoning') {
    for (const [key, text] of texts) {
      const [type, at] = key.split(':')
      const parts = type === 'reasoning_summary' ? content.summary : content.content
      while (parts.length <= Number(at)) parts.push('')
      parts[Number(at)] += wellFormed(text)
    }
  }
  const responseText = texts.get('tool_response')
  if (content.type === 'tool_response' && responseText)
    message.content = { ...content, content: `${content.content ?? ''}${wellFormed(responseText)}` }
  const raw = texts.get('data_json') ?? texts.get('tool_request')
  if (raw !== undefined) finishJson(message, wellFormed(raw))
}

function finishJson(message: Draft, raw: string): void {
  const { content } = message
  try {
    const value: Json = content.type === 'tool_request' && raw.trim() === '' ? {} : storable(JSON.parse(raw))
    if (content.type === 'data') message.content = { ...content, data: value }
    if (content.type === 'tool_request') message.content = { ...content, arguments: value }
  } catch {
    if (content.type === 'data' || content.type === 'tool_request') message.content = { ...content, raw }
    if (message.status === 'complete') message.status = 'failed'
  }
}

function channel(delta: Delta): string {
  return 'index' in delta ? `${delta.type}:${delta.index}` : delta.type
}

function firstTypeOf(delta: Delta): ContentType {
  if (delta.type === 'data') return 'data'
  const types = Object.keys(accepts) as ContentType[]
  return types.find(type => accepts[type].includes(delta.type)) ?? 'text'
}

function emptyOf(type: ContentType): Content {
  switch (type) {
    case 'text':
      return { type, text: '', format: 'plain' }
    case 'reasoning':
      return { type, summary: [], content: [] }
    case 'data':
      return { type, data: null }
    case 'tool_request':
      return { type, callId: '', name: '', arguments: {} }
    case 'tool_response':
      return { type, callId: '', name: '', content: null, isError: false }
    case 'media':
      return { type, mimeType: 'application/octet-stream', data: '' }
    default:
      return type satisfies never
  }
}

/** Replaces NUL and each lone surrogate by U+FFFD. */
function wellFormed(text: string): string {
  return text.replace(/\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
}

function storable<T>(value: T): T
function storable(value: Json): Json {
  if (typeof value === 'string') return wellFormed(value)
  if (Array.isArray(value)) return value.map(item => storable(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [wellFormed(key), storable(child)]))
}
