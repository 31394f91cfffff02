/**
 * A2A, of 1.0 and of 0.3: what its clients send, and the calls of an agent. Bodies are lenient: unknown fields are ignored, and an empty text stands for a
 * field that is absent, as the SDKs write it.
 */
import { agentNameSchema, jsonObjectSchema, jsonSchema, type TurnId, turnIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from '../route.ts'
import { notificationReceived, rpcRequest, rpcResponse } from './json-rpc.ts'

const optional = z
  .string()
  .max(200)
  .nullish()
  .transform(given => given || undefined)
/** A file of this API is a URL, as in the parts that it sends. */
export const ofFile = /^rivulet:files\/([\da-f-]{36})$/
const url = z.union([z.url({ protocol: /^https?$/ }), z.string().regex(ofFile)])
/** A part of 1.0 has one of `text`, `raw`, `url` and `data`; one of 0.3 has one of `text`, `file` and `data`. */
const part = z.object({
  text: z.string().optional(),
  raw: z.base64().min(1).optional(),
  url: url.optional(),
  data: jsonSchema.optional(),
  file: z.object({ bytes: z.base64().min(1).optional(), uri: url.optional(), mimeType: optional, name: optional }).optional(),
  mediaType: optional,
  filename: optional,
})
const message = z.object({
  messageId: z.string().min(1).max(200),
  role: z.enum(['ROLE_USER', 'user']).optional(),
  parts: z.array(part).min(1).max(20),
  contextId: optional,
  taskId: optional,
})

export const sendParams = z.object({
  message,
  configuration: z
    .object({
      /** Of 1.0. */
      returnImmediately: z.boolean().nullish(),
      /** Of 0.3. */
      blocking: z.boolean().nullish(),
      historyLength: z.int().min(0).nullish(),
      /** Of 1.0, and of 0.3. */
      taskPushNotificationConfig: z.unknown().optional(),
      pushNotificationConfig: z.unknown().optional(),
    })
    .nullish(),
  /** `params` is ours: the params of the agent. */
  metadata: z.looseObject({ params: jsonObjectSchema.nullish() }).nullish(),
})

export type SendParams = z.output<typeof sendParams>
export type Part = z.output<typeof part>

const number = z.union([
  z.int().min(0),
  z
    .string()
    .regex(/^\d{1,6}$/, 'A whole number')
    .transform(Number),
])
const truth = z.union([z.boolean(), z.enum(['true', 'false']).transform(text => text === 'true')])

const states = [
  ...['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'],
  ...['TASK_STATE_CANCELED', 'TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_REJECTED'],
] as const
export type TaskState = (typeof states)[number]

/** In the params of JSON-RPC, or in a query string. */
export const listParams = z
  .object({
    contextId: optional,
    status: optional.refine(given => given === undefined || given === 'TASK_STATE_UNSPECIFIED' || isState(given), 'No such state'),
    pageSize: number.refine(size => size >= 1 && size <= 100, 'A page has 1 to 100 tasks').nullish(),
    pageToken: optional.refine(given => given === undefined || parsePageToken(given) !== null, 'No token of a page'),
    historyLength: number.nullish(),
    statusTimestampAfter: optional.refine(given => given === undefined || !Number.isNaN(Date.parse(given)), 'No time'),
    includeArtifacts: truth.nullish(),
  })
  .transform(({ contextId, status, pageSize, pageToken, historyLength, statusTimestampAfter: since, includeArtifacts }) => ({
    contextId,
    state: status && isState(status) ? status : undefined,
    since: since === undefined ? undefined : new Date(since),
    after: pageToken === undefined ? null : parsePageToken(pageToken),
    pageSize: pageSize ?? 50,
    historyLength: historyLength ?? undefined,
    includeArtifacts: includeArtifacts ?? false,
  }))

export type ListParams = z.output<typeof listParams>

function parsePageToken(text: string): { at: Date; id: TurnId } | null {
  const [, time = '', id = ''] = /^(\d{1,15})\.(.+)$/.exec(text) ?? []
  const { data } = turnIdSchema.safeParse(id)
  return data === undefined ? null : { at: new Date(Number(time)), id: data }
}

function isState(text: string): text is TaskState {
  return states.some(state => state === text)
}

const tag = 'a2a'
const reading = { tag, scope: 'tasks:read', hasNoHead: true } as const
const writing = { tag, scope: 'tasks:write' } as const
const sending = [
  'task_not_found',
  'not_found',
  'unknown_agent',
  'too_many_turns',
  'quota_exceeded',
  'too_many_streams',
  'overloaded',
] as const
const ofAgent = z.object({ agent: agentNameSchema })
/** `<id>`, `<id>:cancel` or `<id>:subscribe`. */
const ofTask = ofAgent.extend({ task: z.string().max(100) })
const anyObject = z.looseObject({})
export const mediaType = 'application/a2a+json'
const object = { description: 'An object of A2A', content: { [mediaType]: { schema: anyObject } } }
const card = z.looseObject({ name: z.string() })

export const getAgentCard = route('GET /a2a/:agent/.well-known/agent-card.json', {
  ...reading,
  params: ofAgent,
  returns: { 200: card },
  errors: ['not_found'],
  doc: 'Returns the card of an agent, with an ETag',
})

export const getHostCard = route('GET /.well-known/agent-card.json', {
  ...reading,
  ofAgents: true,
  returns: { 200: card },
  errors: ['not_found'],
  doc: 'Returns the card of the only agent that the caller may use',
})

export const callAgent = route('POST /a2a/:agent', {
  ...writing,
  params: ofAgent,
  body: rpcRequest,
  returns: {
    200: { description: 'A response of JSON-RPC, or a stream of them', content: { 'application/json': { schema: rpcResponse } } },
    202: notificationReceived,
  },
  idempotencyKey: 'kept',
  errors: sending,
  doc: 'Calls a method of A2A as JSON-RPC',
  note: 'Needs `tasks:read`, too',
})

export const sendAgentMessage = route('POST /a2a/:agent/message::send', {
  ...writing,
  params: ofAgent,
  body: sendParams,
  returns: { 200: object },
  idempotencyKey: 'kept',
  errors: sending,
  doc: 'Sends a message to an agent, and returns its task',
  note: 'Needs `tasks:read`, too',
})

export const streamAgentMessage = route('POST /a2a/:agent/message::stream', {
  ...writing,
  params: ofAgent,
  body: sendParams,
  returns: { 200: { description: 'The events of the task', content: { 'text/event-stream': { schema: z.string() } } } },
  idempotencyKey: 'kept',
  errors: sending,
  doc: 'Sends a message to an agent, and streams its task',
  note: 'Needs `tasks:read`, too',
})

export const listAgentTasks = route('GET /a2a/:agent/tasks', {
  ...reading,
  params: ofAgent,
  query: listParams,
  returns: { 200: object },
  errors: ['task_not_found', 'not_found', 'overloaded'],
  doc: 'Lists the tasks of an agent',
  note: 'Its fields: `tasks`, `nextPageToken`, `pageSize`, `totalSize`',
})

export const getAgentTask = route('GET /a2a/:agent/tasks/:task', {
  ...reading,
  params: ofTask,
  query: z.looseObject({
    historyLength: z
      .string()
      .regex(/^\d{1,6}$/)
      .optional(),
  }),
  returns: { 200: object },
  errors: ['task_not_found', 'not_found', 'too_many_streams', 'overloaded'],
  doc: 'Returns a task, or the events of `<id>:subscribe`',
})

export const changeAgentTask = route('POST /a2a/:agent/tasks/:task', {
  ...writing,
  params: ofTask,
  body: anyObject.nullish(),
  returns: { 200: object },
  audited: 'task.canceled',
  errors: ['task_not_found', 'not_found', 'too_many_streams', 'overloaded'],
  doc: 'Cancels the task of `<id>:cancel`, or streams that of `<id>:subscribe`',
})
