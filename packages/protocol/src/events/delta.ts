/** Increments to one message. Transient: the accumulator folds them into contents, and only contents are stored. */
import { z } from 'zod'
import type { ContentType } from '../entities/content.ts'
import { maxReasoningIndex } from '../limits.ts'
import { growBase64, startBase64, toBase64 } from '../values/base64.ts'
import { countFields, isRecord } from '../values/fields.ts'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'

const reasoningIndex = z.int().min(0).max(maxReasoningIndex)

export const deltaSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('reasoning_summary'), index: reasoningIndex, text: z.string() }),
  z.object({ type: z.literal('reasoning_content'), index: reasoningIndex, text: z.string() }),
  z.object({ type: z.literal('data_json'), text: z.string() }),
  z.object({ type: z.literal('data'), value: jsonSchema }),
  z.object({ type: z.literal('tool_request'), text: z.string() }),
  z.object({ type: z.literal('tool_response'), text: z.string() }),
  z.object({ type: z.literal('media'), bytes: z.base64() }),
  z.object({ type: z.literal('metadata'), metadata: jsonObjectSchema }),
])

export type Delta = z.output<typeof deltaSchema>
export type DeltaType = Delta['type']
export type DeltaOf<T extends DeltaType> = Extract<Delta, { type: T }>
/** Deltas that append text. They can be split, held back and merged. */
export type TextDelta = Extract<Delta, { text: string }>

/** The content type of a message whose first update is a delta of this type. */
export function contentTypeOf(type: DeltaType): ContentType {
  switch (type) {
    case 'text':
    case 'metadata':
      return 'text'
    case 'reasoning_summary':
    case 'reasoning_content':
      return 'reasoning'
    case 'data_json':
    case 'data':
      return 'data'
    case 'tool_request':
    case 'tool_response':
    case 'media':
      return type
    default:
      return type satisfies never
  }
}

export function isTextDelta(value: Delta): value is TextDelta {
  return value.type !== 'data' && value.type !== 'media' && value.type !== 'metadata'
}

/** A text delta without other fields; see `fields.ts`. */
export function isPlainText(value: unknown): value is DeltaOf<'text'> {
  return isRecord(value) && value.type === 'text' && typeof value.text === 'string' && countFields(value) === 2
}

/** The part of a message that a delta extends. Adjacent deltas of one channel may be merged. */
export function channelOf(value: Delta): string {
  return 'index' in value ? `${value.type}:${value.index}` : value.type
}

/** One delta with the effect of `first` and then `second`, or null when they cannot be merged. */
export function mergeDeltas(first: Delta, second: Delta): Delta | null {
  // Fast path for nearly all deltas, because a spread takes several times as long.
  if (first.type === 'text' && second.type === 'text') return { type: 'text', text: first.text + second.text }
  if (channelOf(first) !== channelOf(second)) return null
  if (isTextDelta(first) && isTextDelta(second)) return { ...first, text: first.text + second.text }
  if (first.type === 'media' && second.type === 'media') {
    return { type: 'media', bytes: toBase64(growBase64(startBase64(first.bytes), second.bytes)) }
  }
  return null
}
