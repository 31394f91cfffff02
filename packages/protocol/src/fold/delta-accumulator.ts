/**
 * Folds the deltas of one message into its content. The worker, the server, the client and the browser all use this code.
 *
 * An accumulator is immutable: each step returns a new one. The cost of a step does not depend on the length of the message: text grows as a
 * rope, bytes keep their unfilled base64 group apart, and JSON text is parsed once, at the close.
 */

import type { Content, ContentOf } from '../entities/content.ts'
import type { Message } from '../entities/entities.ts'
import { RivuletError } from '../errors.ts'
import type { Delta, DeltaOf, TextDelta } from '../events/delta.ts'
import type { EventOf } from '../events/event.ts'
import { type GrowingBase64, growBase64, startBase64, toBase64 } from '../values/base64.ts'
import { type Json, maxOutputDepth, toStorableJson } from '../values/json.ts'

export class DeltaAccumulator {
  readonly content: Content
  readonly #base: Message
  readonly #bytes: GrowingBase64 | null
  #message: Message | undefined

  private constructor(base: Message, content: Content, bytes: GrowingBase64 | null) {
    this.content = content
    this.#base = base
    this.#bytes = bytes
  }

  /** Built when it is read, not with each delta. The same object until the message changes. */
  get message(): Message {
    this.#message ??= this.content === this.#base.content ? this.#base : { ...this.#base, content: this.content }
    return this.#message
  }

  /** Continues from a message in any state, including a half-written one. */
  static of(message: Message): DeltaAccumulator {
    const { content, status } = message
    const grows = status === 'streaming' && content.type === 'media' && content.url === undefined && content.file === undefined
    return new DeltaAccumulator(message, content, grows ? startBase64(content.data ?? '') : null)
  }

  static started(event: EventOf<'message.started'>): DeltaAccumulator {
    return DeltaAccumulator.of({ ...messageOf(event), author: event.author, status: 'streaming' })
  }

  /** A full message at an index without an earlier message. */
  static replaced(event: EventOf<'message.replaced'>): DeltaAccumulator {
    return DeltaAccumulator.of({ ...messageOf(event), author: 'agent', status: 'complete', finishedAt: timeOf(event.at) })
  }

  get isOpen(): boolean {
    return this.#base.status === 'streaming'
  }

  /** The offset at which a delta begins: the length of its channel, in UTF-16 units or, for media, in bytes. */
  offsetOf(delta: Delta): number {
    const { content } = this
    switch (delta.type) {
      case 'text':
        return content.type === 'text' ? content.text.length : throwMismatch(delta, content)
      case 'reasoning_summary':
        return content.type === 'reasoning' ? (content.summary[delta.index]?.length ?? 0) : throwMismatch(delta, content)
      case 'reasoning_content':
        return content.type === 'reasoning' ? (content.content[delta.index]?.length ?? 0) : throwMismatch(delta, content)
      case 'data_json':
        return content.type === 'data' ? (content.raw?.length ?? 0) : throwMismatch(delta, content)
      case 'tool_request':
        return content.type === 'tool_request' ? (content.raw?.length ?? 0) : throwMismatch(delta, content)
      case 'tool_response':
        return content.type === 'tool_response' ? (textOf(content)?.length ?? throwMismatch(delta, content)) : throwMismatch(delta, content)
      case 'media':
        return content.type === 'media' && this.#bytes ? this.#bytes.byteLength : throwMismatch(delta, content)
      case 'data':
        return content.type === 'data' || content.type === 'tool_response' ? 0 : throwMismatch(delta, content)
      case 'metadata':
        return 0
      default:
        return delta satisfies never
    }
  }

  /** Extends the message. Throws `delta_type_mismatch` for a delta of another content type. */
  append(delta: Delta): DeltaAccumulator {
    if (delta.type === 'metadata') return new DeltaAccumulator({ ...this.#base, metadata: delta.metadata }, this.content, this.#bytes)
    if (delta.type === 'media') return this.#appendBytes(delta)
    return new DeltaAccumulator(this.#base, extend(this.content, delta), null)
  }

  replace(event: EventOf<'message.replaced'>): DeltaAccumulator {
    const { content, metadata = this.#base.metadata, at } = event
    return DeltaAccumulator.of({ ...this.#base, content, metadata, status: 'complete', finishedAt: timeOf(at) })
  }

  /** Closes the message. JSON text that does not parse stays in `raw` and turns the status `complete` into `failed`. */
  finish(event: EventOf<'message.finished'>): DeltaAccumulator {
    const { status, stopReason, usage, response, error, at } = event
    const closed = closeJson(this.content)
    const failure = error ?? (closed === null && status === 'complete' ? brokenJson : undefined)
    return DeltaAccumulator.of({
      ...this.#base,
      content: closed ?? this.content,
      status: closed === null && status === 'complete' ? 'failed' : status,
      finishedAt: timeOf(at),
      ...(stopReason && { stopReason }),
      ...(usage && { usage }),
      ...(response && { response }),
      ...(failure && { error: failure }),
    })
  }

  #appendBytes(delta: DeltaOf<'media'>): DeltaAccumulator {
    const { content } = this
    if (content.type !== 'media' || !this.#bytes) return throwMismatch(delta, content)
    const bytes = growBase64(this.#bytes, delta.bytes)
    return new DeltaAccumulator(this.#base, { ...content, data: toBase64(bytes) }, bytes)
  }
}

export const brokenJson = { code: 'invalid_json', message: 'The JSON text of this message is invalid' }

/** The content with its JSON text parsed into the value, or null when that text is invalid or nested too deep. */
export function closeJson(content: Content): Content | null {
  if (content.type === 'tool_request' && content.raw !== undefined) {
    const { raw, ...rest } = content
    const value = raw.trim() === '' ? {} : parseJson(raw)
    return value === undefined ? null : { ...rest, arguments: value }
  }
  if (content.type === 'data' && content.raw !== undefined) {
    const { raw, ...rest } = content
    const value = parseJson(raw)
    return value === undefined ? null : { ...rest, data: value }
  }
  return content
}

function parseJson(raw: string): Json | undefined {
  try {
    return toStorableJson(JSON.parse(raw), maxOutputDepth)
  } catch {
    return undefined
  }
}

function extend(content: Content, delta: Exclude<TextDelta | DeltaOf<'data'>, DeltaOf<'metadata'>>): Content {
  switch (delta.type) {
    case 'text':
      if (content.type !== 'text') return throwMismatch(delta, content)
      return { type: 'text', text: content.text + delta.text, format: content.format }
    case 'reasoning_summary':
      if (content.type !== 'reasoning') return throwMismatch(delta, content)
      return { ...content, summary: extendPart(content.summary, delta.index, delta.text) }
    case 'reasoning_content':
      if (content.type !== 'reasoning') return throwMismatch(delta, content)
      return { ...content, content: extendPart(content.content, delta.index, delta.text) }
    case 'data_json':
      return content.type === 'data' ? { ...content, raw: (content.raw ?? '') + delta.text } : throwMismatch(delta, content)
    case 'tool_request':
      return content.type === 'tool_request' ? { ...content, raw: (content.raw ?? '') + delta.text } : throwMismatch(delta, content)
    case 'tool_response': {
      if (content.type !== 'tool_response') return throwMismatch(delta, content)
      const before = textOf(content)
      return before === null ? throwMismatch(delta, content) : { ...content, content: before + delta.text }
    }
    case 'data':
      if (content.type === 'data') return { type: 'data', data: delta.value }
      return content.type === 'tool_response' ? { ...content, content: delta.value } : throwMismatch(delta, content)
    default:
      return delta satisfies never
  }
}

function extendPart(parts: readonly string[], index: number, text: string): string[] {
  const extended = parts.slice()
  while (extended.length <= index) extended.push('')
  extended[index] += text
  return extended
}

/** The text that a tool response's text delta extends, or null when the response is another value. */
function textOf({ content }: ContentOf<'tool_response'>): string | null {
  if (content === null) return ''
  return typeof content === 'string' ? content : null
}

function throwMismatch(delta: Delta, content: Content): never {
  throw new RivuletError('delta_type_mismatch', `A delta of type ${delta.type} cannot extend a message of type ${content.type}`)
}

function messageOf(event: EventOf<'message.started' | 'message.replaced'>): Omit<Message, 'author' | 'status'> {
  const { task, index, turn, attempt, content, metadata = {}, at } = event
  return { task, index, turn, attempt, content, metadata, createdAt: timeOf(at) }
}

export function timeOf(at: number): string {
  return new Date(at).toISOString()
}
