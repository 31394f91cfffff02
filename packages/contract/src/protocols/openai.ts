/**
 * The bodies of OpenAI's APIs. They are lenient, because OpenAI's SDKs gain fields every month: an unknown field is ignored. A field that asks for
 * something that an agent does not do is refused, so that nothing is silently done otherwise. What an agent may do with a request is passed
 * to it as `params`.
 */
import { fileIdSchema, fileNameSchema, jsonObjectSchema, jsonSchema, maxHistoryMessages } from '@rivulet/protocol'
import { z } from 'zod'
import { type OtherContent, route } from '../route.ts'

const fileId = fileIdSchema.nullish()
const imagePart = z.object({ type: z.literal('input_image'), image_url: z.string().nullish(), file_id: fileId })
const fileFields = { file_data: z.string().optional(), filename: fileNameSchema.optional(), file_id: fileId }
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

const ofConversation = z.object({ id: z.string().max(100) })
const ofItem = ofConversation.extend({ item: z.string().max(200) })
const items = z.array(inputItemSchema).max(maxHistoryMessages)
const anyList = z.looseObject({ object: z.literal('list') })
const order = z.enum(['asc', 'desc']).default('desc')

export const createConversation = route('POST /openai/v1/conversations', {
  ...writing,
  addsWork: true,
  body: z.object({ metadata, items: items.nullish() }).nullish(),
  returns: { 200: anyObject },
  idempotencyKey: 'kept',
  errors: ['unknown_agent', 'quota_exceeded'],
  doc: 'Creates a conversation, as a task without a turn',
})

export const getConversation = route('GET /openai/v1/conversations/:id', {
  ...reading,
  params: ofConversation,
  returns: { 200: anyObject },
  errors: ['task_not_found'],
  doc: 'Returns a conversation',
})

export const updateConversation = route('POST /openai/v1/conversations/:id', {
  ...writing,
  params: ofConversation,
  body: z.object({ metadata }),
  returns: { 200: anyObject },
  audited: 'task.changed',
  errors: ['task_not_found'],
  doc: 'Replaces the metadata of a conversation',
})

export const deleteConversation = route('DELETE /openai/v1/conversations/:id', {
  ...writing,
  params: ofConversation,
  returns: { 200: anyObject.extend({ deleted: z.literal(true) }) },
  audited: 'task.deleted',
  errors: ['task_not_found', 'task_busy'],
  doc: 'Deletes a conversation that no agent is working on',
})

export const createConversationItems = route('POST /openai/v1/conversations/:id/items', {
  ...writing,
  params: ofConversation,
  body: z.object({ items: items.min(1) }),
  returns: { 200: anyList },
  idempotencyKey: 'kept',
  audited: 'task.changed',
  errors: ['task_not_found'],
  doc: 'Adds items to a conversation that has no response',
})

export const listConversationItems = route('GET /openai/v1/conversations/:id/items', {
  ...reading,
  params: ofConversation,
  query: z.object({ after: z.string().max(200).optional(), limit: z.coerce.number().int().min(1).max(100).default(20), order }),
  returns: { 200: anyList },
  errors: ['task_not_found', 'not_found'],
  doc: 'Lists the items of a conversation, newest first',
})

export const getConversationItem = route('GET /openai/v1/conversations/:id/items/:item', {
  ...reading,
  params: ofItem,
  returns: { 200: z.looseObject({ id: z.string() }) },
  errors: ['task_not_found', 'not_found'],
  doc: 'Returns an item of a conversation',
})

export const deleteConversationItem = route('DELETE /openai/v1/conversations/:id/items/:item', {
  ...writing,
  params: ofItem,
  returns: { 200: anyObject },
  audited: 'task.changed',
  errors: ['task_not_found', 'not_found'],
  doc: 'Deletes the last item of a conversation that has no response, and returns the conversation',
})

const ofFile = z.object({ id: fileIdSchema })

/** An upload may name any of these purposes; every file has the one below. */
export const filePurposes = ['user_data', 'assistants', 'vision'] as const
export const filePurpose = 'user_data'

const openAiFile = z.object({
  id: fileIdSchema,
  object: z.literal('file'),
  bytes: z.int(),
  created_at: z.int(),
  filename: z.string(),
  purpose: z.literal(filePurpose),
  status: z.literal('processed'),
})

export const createOpenAiFile = route('POST /openai/v1/files', {
  ...writing,
  echoes: 200,
  consumes: ['multipart/form-data'],
  body: z.any(),
  returns: { 200: openAiFile },
  idempotencyKey: 'kept',
  audited: 'file.created',
  errors: ['request_timeout', 'quota_exceeded', 'overloaded'],
  doc: 'Stores the file of a form',
})

export const listOpenAiFiles = route('GET /openai/v1/files', {
  ...reading,
  query: z.object({
    after: fileIdSchema.optional(),
    limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
    order,
    purpose: z.string().optional(),
  }),
  returns: { 200: anyList },
  doc: 'Lists the files, newest first',
})

export const getOpenAiFile = route('GET /openai/v1/files/:id', {
  ...reading,
  hasNoHead: true,
  params: ofFile,
  returns: { 200: openAiFile },
  errors: ['not_found'],
  doc: 'Returns what is known of a file',
})

export const getOpenAiFileContent = route('GET /openai/v1/files/:id/content', {
  ...reading,
  hasNoHead: true,
  params: ofFile,
  returns: { 200: z.any().describe('Its bytes'), 206: z.any().describe('A range of them') },
  errors: ['not_found', 'range_not_satisfiable', 'overloaded'],
  doc: 'Returns the bytes of a file, or a range of them',
})

export const deleteOpenAiFile = route('DELETE /openai/v1/files/:id', {
  ...writing,
  params: ofFile,
  returns: { 200: z.object({ id: fileIdSchema, object: z.literal('file'), deleted: z.literal(true) }) },
  audited: 'file.deleted',
  errors: ['not_found', 'file_in_use'],
  doc: 'Deletes a file that no task refers to',
})
