/** AG-UI: the body of a run, and the calls of a thread. The body is lenient, because clients gain fields: unknown ones are ignored. */
import { agentNameSchema, fileIdSchema, jsonObjectSchema, jsonSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from '../route.ts'

const source = z.discriminatedUnion('type', [
  z.object({ type: z.literal('data'), value: z.base64().min(1), mimeType: z.string().min(1).max(200) }),
  z.object({ type: z.literal('url'), value: z.url({ protocol: /^https?$/ }), mimeType: z.string().max(200).optional() }),
  /** As this API names its files. Those of others are not here. */
  z.object({
    type: z.literal('file'),
    value: fileIdSchema,
    provider: z.literal('rivulet').optional(),
    mimeType: z.string().max(200).optional(),
  }),
])
const part = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.enum(['image', 'audio', 'video', 'document']), source }),
])
export const content = z.union([z.string(), z.array(part)])
const toolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })
const id = z.string().max(200)
/** Of a message of a subagent: it is in the task of that. */
const subagentRunId = z.string().nullish()

export const clientMessage = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), id, content }),
  z.object({ role: z.literal('assistant'), id, subagentRunId, content: z.string().nullish(), toolCalls: z.array(toolCall).nullish() }),
  z.object({ role: z.literal('tool'), id, subagentRunId, toolCallId: z.string(), content: z.union([z.string(), z.array(z.unknown())]) }),
  z.object({ role: z.enum(['system', 'developer', 'reasoning']), id, subagentRunId, content: z.string() }),
  z.object({ role: z.literal('activity'), id }),
])

/** A part that is not a message of the user may be of any kind: it is not read. */
const anyMessage = z.union([clientMessage, z.object({ role: z.literal('user'), id, content: z.array(z.object({ type: z.string() })) })])

export const runAgentInput = z.object({
  /** It is a part of the path when a client connects. */
  threadId: z.string().min(1).max(100),
  runId: z.string().regex(/^[\x21-\x7e]{1,200}$/, 'Use 1 to 200 printable ASCII characters'),
  protocolVersion: z
    .string()
    .regex(/^1(\.\d+)*$/, 'This API speaks 1.0')
    .nullish(),
  messages: z.array(anyMessage),
  tools: z.array(jsonObjectSchema).nullish(),
  context: z.array(jsonObjectSchema).nullish(),
  forwardedProps: z.union([jsonObjectSchema, z.null()]).optional(),
  resume: z
    .array(z.object({ interruptId: z.string(), status: z.enum(['resolved', 'cancelled']), payload: jsonSchema.optional() }))
    .max(100)
    .nullish(),
})

export type RunInput = z.output<typeof runAgentInput>
export type ClientMessage = z.output<typeof clientMessage>

const tag = 'ag-ui'
const reading = { tag, scope: 'tasks:read' } as const
const writing = { tag, scope: 'tasks:write' } as const
const ofAgent = z.object({ agent: agentNameSchema })
export const ofThread = ofAgent.extend({ thread: z.string().min(1) })
const stream = { description: 'The events of the run', content: { 'text/event-stream': { schema: z.string() } } }

export const runAgent = route('POST /ag-ui/:agent', {
  ...writing,
  addsWork: true,
  params: ofAgent,
  body: runAgentInput,
  returns: { 200: stream },
  idempotencyKey: 'kept',
  errors: ['task_not_found', 'not_found', 'unknown_agent', 'too_many_turns', 'quota_exceeded', 'too_many_streams'],
  doc: 'Runs an agent in a thread, and streams the run',
  note: 'Needs `tasks:read`, too',
})

export const watchThread = route('GET /ag-ui/:agent/threads/:thread', {
  ...reading,
  hasNoHead: true,
  params: ofThread,
  returns: { 200: stream },
  errors: ['task_not_found', 'not_found', 'bad_cursor', 'too_many_streams', 'overloaded'],
  doc: 'Streams the run that a thread has, after `Last-Event-ID` if it is set',
})

export const cancelThread = route('POST /ag-ui/:agent/threads/:thread/cancel', {
  ...writing,
  params: ofThread,
  body: z.looseObject({}).nullish(),
  returns: { 200: z.object({ threadId: z.string() }) },
  audited: 'task.canceled',
  errors: ['task_not_found', 'not_found'],
  doc: 'Cancels what a thread does',
})
