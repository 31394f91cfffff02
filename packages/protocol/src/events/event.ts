/** The events of a task's log, and the events that a stream adds to them. An event's cursor is sent with it, not as one of its fields. */
import { z } from 'zod'
import { contentSchema } from '../entities/content.ts'
import {
  authorSchema,
  failureSchema,
  messageSchema,
  omittedSchema,
  responseSchema,
  taskSchema,
  turnSchema,
  usageSchema,
} from '../entities/entities.ts'
import { taskIdSchema } from '../entities/ids.ts'
import { stateSchema } from '../entities/state.ts'
import { messageStatusSchema, outcomeStatusSchema, stopReasonSchema, taskStatusSchema } from '../entities/status/status-schema.ts'
import { turnWaitSchema, waitAnswerSchema, waitIdSchema, waitStatusSchema } from '../entities/wait.ts'
import { countFields, isCount, isRecord } from '../values/fields.ts'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'
import { deltaSchema, isPlainText } from './delta.ts'

const index = z.int().min(0)

const common = {
  task: taskIdSchema,
  turn: z.int().min(1),
  attempt: z.int().min(0),
  /** Milliseconds since 1970. */
  at: z.number(),
}

export const eventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('turn.queued'),
    ...common,
    input: contentSchema.optional(),
    inputs: z.array(contentSchema).optional(),
    omitted: omittedSchema,
  }),
  z
    .object({
      type: z.literal('turn.started'),
      ...common,
      firstIndex: index,
      /** The first input. */
      input: messageSchema.optional(),
      /** All inputs, where there are several. */
      inputs: z.array(messageSchema).optional(),
      /** The state of the task before the turn, if it has one. A new attempt begins with it again. */
      state: stateSchema.optional(),
    })
    .refine(
      ({ firstIndex, input, inputs = input ? [input] : [] }) =>
        inputs.every((message, i) => message.index === firstIndex - inputs.length + i),
      'firstIndex must be the index after the last input',
    ),
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
    response: responseSchema.optional(),
    error: failureSchema.optional(),
  }),
  /** The turns from this number on, up to this turn, are left behind: the conversation goes on before them. */
  z.object({ type: z.literal('turn.discarded'), ...common, from: z.int().min(1) }),
  /** The input of this turn becomes messages of another one, from this index on. */
  z.object({ type: z.literal('turn.joined'), ...common, into: z.int().min(1), index }),
  /** `more`: another wait was opened together with this one, and follows. */
  z.object({ type: z.literal('turn.waiting'), ...common, wait: turnWaitSchema, more: z.boolean().optional() }),
  z.object({
    type: z.literal('turn.resumed'),
    ...common,
    wait: waitIdSchema,
    status: waitStatusSchema.exclude(['open']),
    answer: waitAnswerSchema.optional(),
  }),
  /** A new value of the task's state, or a merge patch of the one before. `attempt` is 0 where the server changed it between two turns. */
  z
    .object({
      type: z.literal('state.changed'),
      ...common,
      version: z.int().min(0),
      value: jsonSchema.optional(),
      patch: jsonObjectSchema.optional(),
    })
    .refine(({ value, patch }) => (value === undefined) !== (patch === undefined), 'A change has either a value or a patch'),
  /** The turn has a child: a task of its own. `attempt` is 0, because it belongs to all attempts. */
  z.object({ type: z.literal('child.started'), ...common, child: taskIdSchema, name: z.string(), callId: z.string().optional() }),
  z.object({ type: z.literal('child.finished'), ...common, child: taskIdSchema, status: outcomeStatusSchema }),
  z.object({
    type: z.literal('turn.finished'),
    ...common,
    status: outcomeStatusSchema,
    stopReason: stopReasonSchema,
    usage: usageSchema.optional(),
    usageTotal: usageSchema.optional(),
    cost: z.number().optional(),
    error: failureSchema.optional(),
  }),
  z.object({ type: z.literal('custom'), ...common, name: z.string(), data: jsonSchema, index: index.optional() }),
])

const snapshotReasonSchema = z.enum(['join', 'gap', 'slow'])

/** Sent in streams only; never stored in the log. */
export const wireEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('snapshot'),
    reason: snapshotReasonSchema,
    task: taskSchema,
    turns: z.array(turnSchema),
    messages: z.array(messageSchema),
    messagesFrom: index,
    /** Absent while it was never set. */
    state: stateSchema.optional(),
  }),
  z.object({ type: z.literal('caught_up'), task: taskIdSchema }),
  z.object({ type: z.literal('end'), task: taskIdSchema, status: taskStatusSchema }),
  /** The task was removed while it was watched. Nothing follows. */
  z.object({ type: z.literal('deleted'), task: taskIdSchema }),
])

/** Sent to a viewer with a task token, before that token expires: the token for its next connection. Does not change the task. */
export const tokenEventSchema = z.object({ type: z.literal('token'), task: taskIdSchema, token: z.string(), expiresAt: z.iso.datetime() })

/** The last event in the stream of one message. Without a status, the task ended without the message. */
export const messageEndSchema = z.object({
  type: z.literal('end'),
  task: taskIdSchema,
  index,
  status: messageStatusSchema.exclude(['streaming']).optional(),
})

export type Event = z.output<typeof eventSchema>
export type EventType = Event['type']
export type EventOf<T extends EventType> = Extract<Event, { type: T }>
export type MessageEvent = EventOf<'message.started' | 'message.delta' | 'message.replaced' | 'message.finished'>
export type WireEvent = z.output<typeof wireEventSchema>
export type Snapshot = Extract<WireEvent, { type: 'snapshot' }>
export type MessageEnd = z.output<typeof messageEndSchema>
export type TokenEvent = z.output<typeof tokenEventSchema>
export type SnapshotReason = z.output<typeof snapshotReasonSchema>

/** The event, or null for a type or a shape that this version does not know. Readers ignore those. */
export function parseEvent(value: unknown): Event | null {
  if (isPlainDelta(value)) return value
  const parsed = eventSchema.safeParse(value)
  return parsed.success ? parsed.data : null
}

/**
 * A fast check for the most frequent event: a text delta with exactly the fields that this version knows. It exists because the schema gives
 * the same result at many times the cost, and every reader parses every event. A test compares the two.
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

/** By capitals it is the schema's to make one form of it. */
const uuidPattern = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/
