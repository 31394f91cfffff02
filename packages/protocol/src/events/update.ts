/**
 * The output of an agent, in its own numbering: index 0 is the first message of its turn. Generators yield updates, models stream them, and
 * the composer converts them to events.
 */
import { z } from 'zod'
import { type Content, contentSchema, text } from '../entities/content.ts'
import { failureSchema, responseSchema, type Speaker, speakerSchema, usageSchema } from '../entities/entities.ts'
import { messageStatusSchema, stopReasonSchema } from '../entities/status/status-schema.ts'
import { countFields, isCount, isRecord } from '../values/fields.ts'
import type { Json, JsonObject } from '../values/json.ts'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'
import { type Delta, deltaSchema, isPlainText } from './delta.ts'

const index = z.int().min(0)

export const updateSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('start'),
    index,
    content: contentSchema,
    metadata: jsonObjectSchema.optional(),
    /** Default `agent`. */
    author: speakerSchema.optional(),
  }),
  z.object({ type: z.literal('delta'), index, delta: deltaSchema }),
  z.object({ type: z.literal('full'), index, content: contentSchema, metadata: jsonObjectSchema.optional() }),
  z.object({
    type: z.literal('done'),
    index,
    status: messageStatusSchema.exclude(['streaming']).optional(),
    stopReason: stopReasonSchema.optional(),
    usage: usageSchema.optional(),
    response: responseSchema.optional(),
    error: failureSchema.optional(),
  }),
  z.object({ type: z.literal('custom'), name: z.string(), data: jsonSchema, index: index.optional() }),
])

export type Update = z.output<typeof updateSchema>
export type UpdateOf<T extends Update['type']> = Extract<Update, { type: T }>

/**
 * A fast parse of the most frequent update: a copy of a text delta with exactly the fields that this version knows, else null. It exists
 * because the schema gives the same result at many times the cost. A test compares the two.
 */
export function copyTextDelta(value: unknown): UpdateOf<'delta'> | null {
  if (!isRecord(value) || value.type !== 'delta' || countFields(value) !== 3) return null
  const { index: at, delta: addition } = value
  return isCount(at) && isPlainText(addition) ? { type: 'delta', index: at, delta: { type: 'text', text: addition.text } } : null
}

/** Opens a message with a content that deltas extend. */
export function start(at: number, base: Content, metadata?: JsonObject, author?: Speaker): UpdateOf<'start'> {
  return { type: 'start', index: at, content: base, ...(metadata && { metadata }), ...(author && { author }) }
}

/** Extends a message. A string is a text delta. */
export function delta(at: number, addition: string | Delta): UpdateOf<'delta'> {
  return { type: 'delta', index: at, delta: typeof addition === 'string' ? { type: 'text', text: addition } : addition }
}

/** Replaces the whole message at the index and closes it. A string is plain text. */
export function full(at: number, whole: string | Content, metadata?: JsonObject): UpdateOf<'full'> {
  return { type: 'full', index: at, content: typeof whole === 'string' ? text(whole) : whole, ...(metadata && { metadata }) }
}

/** Closes a message. Optional, because the end of the turn closes open messages. */
export function done(at: number, how: Omit<UpdateOf<'done'>, 'type' | 'index'> = {}): UpdateOf<'done'> {
  return { type: 'done', index: at, ...how }
}

/** An event that the agent defines. It never changes a message. */
export function custom(name: string, value: Json, at?: number): UpdateOf<'custom'> {
  return { type: 'custom', name, data: value, ...(at !== undefined && { index: at }) }
}
