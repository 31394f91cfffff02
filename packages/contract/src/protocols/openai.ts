/**
 * The bodies of OpenAI's APIs. They are lenient, because OpenAI's SDKs gain fields every month: an unknown field is ignored. A field that asks for
 * something that an agent does not do is refused, so that nothing is silently done otherwise. What an agent may do with a request is passed
 * to it as `params`.
 */
import { fileNameSchema, jsonObjectSchema, jsonSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { type OtherContent, route } from '../route.ts'

const imagePart = z.object({ type: z.literal('input_image'), image_url: z.string() })
const fileFields = { file_data: z.string().optional(), filename: fileNameSchema.optional() }
const filePart = z.object({ type: z.literal('input_file'), ...fileFields, file_url: z.string().optional() })
const textPart = z.object({ type: z.enum(['input_text', 'output_text', 'text']), text: z.string() })
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const chatImagePart = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) })
export const chatFilePart = z.object({ type: z.literal('file'), file: z.object(fileFields) })
const audioFields = z.object({ data: z.string(), format: z.enum(['wav', 'mp3']) })
const audioPart = z.object({ type: z.literal('input_audio'), input_audio: audioFields })
export const partSchema = z.discriminatedUnion('type', [textPart, imagePart, filePart, refusalPart, chatImagePart, chatFilePart, audioPart])
export const contentSchema = z.union([z.string(), z.array(partSchema).min(1)])

const roleSchema = z.enum(['user', 'assistant', 'system', 'developer'])
const messageItem = z.object({ type: z.literal('message').optional(), role: roleSchema, content: contentSchema })
const callItem = z.object({ type: z.literal('function_call'), call_id: z.string(), name: z.string(), arguments: z.string() })
const callOutputItem = z.object({ type: z.literal('function_call_output'), call_id: z.string(), output: contentSchema })
const mcpCallItem = z.object({
  type: z.literal('mcp_call'),
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
  output: z.string().nullish(),
  error: z.union([z.string(), z.looseObject({ content: z.unknown().optional(), message: z.string().optional() })]).nullish(),
})
const imageItem = z.object({ type: z.literal('image_generation_call'), result: z.string().nullish() })
const approvalRequestItem = z.object({ type: z.literal('mcp_approval_request'), id: z.string() })
const approvalResponseItem = z.object({
  type: z.literal('mcp_approval_response'),
  approval_request_id: z.string(),
  approve: z.boolean(),
  reason: z.string().nullish(),
})
const summaryText = z.object({ text: z.string() })
const reasoningItem = z.object({ type: z.literal('reasoning'), summary: z.array(summaryText), content: z.array(summaryText).nullish() })

/** An item of an earlier response, by its id alone. */
export const itemReference = z.object({ type: z.literal('item_reference').nullish(), id: z.string().max(200) })

const wholeItemSchema = z.union([
  messageItem,
  callItem,
  callOutputItem,
  mcpCallItem,
  imageItem,
  approvalRequestItem,
  approvalResponseItem,
  reasoningItem,
])
export type WholeItem = z.output<typeof wholeItemSchema>

export const inputItemSchema = z.union([wholeItemSchema, itemReference])
export type InputItem = z.output<typeof inputItemSchema>

const toolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })
export const chatMessageSchema = z.union([
  z.object({ role: z.literal('tool'), content: contentSchema, tool_call_id: z.string() }),
  z.object({ role: roleSchema, content: contentSchema.nullish(), tool_calls: z.array(toolCall).nullish() }),
])
export type ChatMessage = z.output<typeof chatMessageSchema>

const metadata = z.record(z.string().max(64), z.string().max(512)).nullish()

/** Passed on to the agent. `params` is ours: any further parameters of the agent. */
const options = {
  params: jsonObjectSchema.nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  reasoning: jsonObjectSchema.nullish(),
}

const formatSchema = jsonObjectSchema.and(z.looseObject({ type: z.string() }))

export const createResponseBody = z.object({
  ...options,
  model: z.string(),
  input: z.union([z.string(), z.array(inputItemSchema).min(1).max(1_000)]),
  instructions: z.string().nullish(),
  max_output_tokens: z.int().nullish(),
  max_tool_calls: z.int().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.union([z.string(), z.object({ id: z.string() })]).nullish(),
  metadata,
  background: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  tools: z.array(jsonObjectSchema).max(200).nullish(),
  tool_choice: jsonSchema.optional(),
  text: z.object({ format: formatSchema.nullish() }).nullish(),
  prompt: z.unknown().optional(),
})

export const chatCompletionBody = z.object({
  ...options,
  model: z.string(),
  messages: z.array(chatMessageSchema).min(1).max(1_000),
  max_tokens: z.int().nullish(),
  max_completion_tokens: z.int().nullish(),
  reasoning_effort: z.string().nullish(),
  metadata,
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().nullish(),
  tools: z.array(jsonObjectSchema).max(200).nullish(),
  functions: z.array(z.unknown()).nullish(),
  tool_choice: jsonSchema.optional(),
  modalities: z.array(z.string()).nullish(),
  response_format: formatSchema.nullish(),
})

/** `hide`: the caller joins all deltas, so what follows a failed attempt comes when it is certain. */
export const retriesQuery = z.object({ retries: z.enum(['show', 'hide']).optional() })

export type CreateResponse = z.output<typeof createResponseBody>
export type ChatCompletion = z.output<typeof chatCompletionBody>

const tag = 'openai'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const
const work = ['task_not_found', 'not_found', 'model_not_found', 'too_many_turns', 'quota_exceeded', 'too_many_streams'] as const
const params = z.object({ id: z.string().max(100) })
const anyObject = z.looseObject({ id: z.string(), object: z.string() })
const model = z.object({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })

function orStream(description: string) {
  return { description, content: { 'application/json': { schema: anyObject } } } satisfies OtherContent
}

export const createResponse = route('POST /openai/v1/responses', {
  ...writing,
  addsWork: true,
  query: retriesQuery,
  body: createResponseBody,
  returns: { 200: orStream('The object, or its events') },
  idempotencyKey: 'kept',
  errors: work,
  doc: 'Creates a response of an agent, as a turn',
})

export const getResponse = route('GET /openai/v1/responses/:id', {
  ...reading,
  hasNoHead: true,
  params,
  query: retriesQuery.extend({
    stream: z.enum(['true', 'false']).optional(),
    starting_after: z
      .string()
      .regex(/^\d{1,16}$/)
      .optional(),
  }),
  returns: { 200: orStream('The object, or its events') },
  errors: ['task_not_found', 'not_found', 'too_many_streams', 'overloaded'],
  doc: 'Returns a response, or its events',
})

export const deleteResponse = route('DELETE /openai/v1/responses/:id', {
  ...writing,
  params,
  returns: { 200: anyObject.extend({ deleted: z.literal(true) }) },
  audited: 'task.deleted',
  errors: ['task_not_found', 'not_found', 'task_busy'],
  doc: 'Deletes the only response of a conversation, with the conversation',
})

export const cancelResponse = route('POST /openai/v1/responses/:id/cancel', {
  ...writing,
  params,
  body: z.looseObject({}).nullish(),
  returns: { 200: anyObject },
  audited: 'task.canceled',
  errors: ['task_not_found', 'not_found'],
  doc: 'Cancels the turn of a response alone, and returns the response',
})

export const listInputItems = route('GET /openai/v1/responses/:id/input_items', {
  ...reading,
  params,
  returns: { 200: z.looseObject({ object: z.literal('list') }) },
  errors: ['task_not_found', 'not_found'],
  doc: 'Lists the input of a response',
})

export const createChatCompletion = route('POST /openai/v1/chat/completions', {
  ...writing,
  addsWork: true,
  query: retriesQuery,
  body: chatCompletionBody,
  returns: { 200: orStream('The object, or its chunks') },
  idempotencyKey: 'kept',
  errors: work,
  doc: 'Completes a chat by a turn of an agent',
  note: 'Needs `tasks:read`, too',
})

export const listModels = route('GET /openai/v1/models', {
  ...reading,
  returns: { 200: z.object({ object: z.literal('list'), data: z.array(model) }) },
  doc: 'Lists the agents',
})

export const getModel = route('GET /openai/v1/models/:model', {
  ...reading,
  params: z.object({ model: z.string() }),
  returns: { 200: model },
  errors: ['model_not_found', 'not_found'],
  doc: 'Returns an agent',
})
