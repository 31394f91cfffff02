/** What stands in a task's log, and what is said on the wire around it. An event's cursor is beside it, not in it. */
import { z } from 'zod'
import { contentSchema } from './content.ts'
import { deltaSchema, isPlainText } from './delta.ts'
import { authorSchema, failureSchema, messageSchema, taskIdSchema, taskSchema, turnSchema, usageSchema } from './entities.ts'
import { countFields, isCount, isRecord } from './fields.ts'
import { jsonObjectSchema, jsonSchema } from './json.ts'
import { messageStatusSchema, outcomeStatusSchema, stopReasonSchema, taskStatusSchema } from './status.ts'

const index = z.int().min(0)

const common = {
  task: taskIdSchema,
  turn: z.int().min(1),
  attempt: z.int().min(0),
  /** Milliseconds since 1970. */
  at: z.number(),
}

export const eventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('turn.queued'), ...common, input: contentSchema.optional() }),
  z
    .object({ type: z.literal('turn.started'), ...common, firstIndex: index, input: messageSchema.optional() })
    .refine(({ firstIndex, input }) => input === undefined || input.index + 1 === firstIndex, 'What the agent says follows its input'),
  z.object({
    type: z.literal('message.started'),
    ...common,
    index,
    author: authorSchema,
    content: contentSchema,
    metadata: jsonObjectSchema.optional(),
  }),
  z.object({ type: z.literal('message.delta'), ...common, index, delta: deltaSchema, offset: z.int().min(0) }),
  z.object({ type: z.literal('message.replaced'), ...common, index, content: contentSchema, metadata: jsonObjectSchema.optional() }),
  z.object({
    type: z.literal('message.finished'),
    ...common,
    index,
    status: messageStatusSchema.exclude(['streaming']),
    stopReason: stopReasonSchema.optional(),
    usage: usageSchema.optional(),
    error: failureSchema.optional(),
  }),
  z.object({ type: z.literal('turn.waiting'), ...common, request: jsonSchema }),
  z.object({ type: z.literal('turn.resumed'), ...common, response: jsonSchema }),
  z.object({
    type: z.literal('turn.finished'),
    ...common,
    status: outcomeStatusSchema,
    stopReason: stopReasonSchema,
    usage: usageSchema.optional(),
    error: failureSchema.optional(),
  }),
  z.object({ type: z.literal('custom'), ...common, name: z.string(), data: jsonSchema, index: index.optional() }),
])

const snapshotReasonSchema = z.enum(['join', 'gap', 'slow'])

/** Only on the wire, never in the log. */
export const wireEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('snapshot'),
    reason: snapshotReasonSchema,
    task: taskSchema,
    turns: z.array(turnSchema),
    messages: z.array(messageSchema),
    messagesFrom: index,
  }),
  z.object({ type: z.literal('caught_up'), task: taskIdSchema }),
  z.object({ type: z.literal('end'), task: taskIdSchema, status: taskStatusSchema }),
])

/** Only for a viewer who came with a token, before that ends: what to come back with. Changes nothing about the task. */
export const tokenEventSchema = z.object({ type: z.literal('token'), task: taskIdSchema, token: z.string(), expiresAt: z.iso.datetime() })

export type Event = z.output<typeof eventSchema>
export type EventType = Event['type']
export type EventOf<T extends EventType> = Extract<Event, { type: T }>
export type MessageEvent = EventOf<'message.started' | 'message.delta' | 'message.replaced' | 'message.finished'>

export function isMessageEvent(event: Event): event is MessageEvent {
  return event.type.startsWith('message.')
}
export type WireEvent = z.output<typeof wireEventSchema>
export type Snapshot = Extract<WireEvent, { type: 'snapshot' }>
export type TokenEvent = z.output<typeof tokenEventSchema>
export type SnapshotReason = z.output<typeof snapshotReasonSchema>

/** The event, or null for a type or a shape that this version does not know: readers pass those over. */
export function parseEvent(value: unknown): Event | null {
  if (isPlainDelta(value)) return value
  const parsed = eventSchema.safeParse(value)
  return parsed.success ? parsed.data : null
}

/**
 * What nearly every event is: a delta of text, with the fields that this version knows and no others. Looked at by hand, because every reader
 * looks at every one of them; the schema says the same (there is a test), at many times the cost.
 */
function isPlainDelta(value: unknown): value is EventOf<'message.delta'> {
  if (!isRecord(value)) return false
  const { type, task, turn, attempt, at, index: place, delta, offset } = value
  return (
    type === 'message.delta' &&
    isPlainText(delta) &&
    isCount(turn) &&
    turn >= 1 &&
    isCount(attempt) &&
    isCount(place) &&
    isCount(offset) &&
    Number.isFinite(at) &&
    typeof task === 'string' &&
    uuidPattern.test(task) &&
    countFields(value) === 8
  )
}

const uuidPattern = z.regexes.uuid()
