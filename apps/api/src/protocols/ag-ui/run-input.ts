/**
 * The body of an AG-UI run. It is lenient: unknown fields are ignored. The history of a thread is in its task, so of `messages` only the last one counts,
 * if it is the user's and new; a new thread gets those before it as its history.
 */
import {
  type AgentSettings,
  type Content,
  fileIdSchema,
  type HistoryMessage,
  type Json,
  type JsonObject,
  jsonObjectSchema,
  jsonSchema,
  type Limits,
  maxHistoryMessages,
  RivuletError,
  reasoning,
  text,
  toolRequest,
  toolResponse,
} from '@rivulet/protocol'
import { z } from 'zod'
import { parseCallerText } from '../../http/requests/json-body.ts'
import { fittingParams } from '../../store/tasks/accept/check-params.ts'
import type { AgUiMessage } from './ag-ui-message.ts'

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
const content = z.union([z.string(), z.array(part)])
const toolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })
const id = z.string().max(200)
/** Of a message of a subagent: it is in the task of that. */
const subagentRunId = z.string().nullish()

const message = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), id, content }),
  z.object({ role: z.literal('assistant'), id, subagentRunId, content: z.string().nullish(), toolCalls: z.array(toolCall).nullish() }),
  z.object({ role: z.literal('tool'), id, subagentRunId, toolCallId: z.string(), content: z.union([z.string(), z.array(z.unknown())]) }),
  z.object({ role: z.enum(['system', 'developer', 'reasoning']), id, subagentRunId, content: z.string() }),
  z.object({ role: z.literal('activity'), id }),
])

/** A part that is not a message of the user may be of any kind: it is not read. */
const anyMessage = z.union([message, z.object({ role: z.literal('user'), id, content: z.array(z.object({ type: z.string() })) })])

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

const wrongPart = 'Use parts of text, or of media with data, a URL or a file of this API'

export type RunInput = z.output<typeof runAgentInput>
type ClientMessage = z.output<typeof message>

/** The last message, if the user sent it. */
export function lastInput({ messages }: RunInput): { message: AgUiMessage; input: Content[] } | null {
  const last = messages.at(-1)
  if (last?.role !== 'user') return null
  const { data } = message.safeParse(last)
  if (data?.role !== 'user') throw wrong(`messages/${messages.length - 1}/content`, wrongPart)
  return { message: { id: last.id, role: 'user', content: data.content }, input: contentsOf(data.content) }
}

/** What the client's tools have returned since the agent spoke, by the id of the call. */
export function toolResults({ messages }: RunInput): Map<string, string> {
  const start = messages.findLastIndex(({ role }) => role !== 'tool') + 1
  return new Map(messages.slice(start).flatMap(one => ('toolCallId' in one ? [[one.toolCallId, resultText(one.content)] as const] : [])))
}

/** The messages of a thread that took place elsewhere, with the ids that their client knows them by. */
export function historyOf({ messages }: RunInput, hasInput: boolean, limits: Limits): HistoryMessage[] {
  const before = (hasInput ? messages.slice(0, -1) : messages).filter(one => !('subagentRunId' in one && one.subagentRunId))
  const names = new Map(
    before.flatMap(one => ('toolCalls' in one ? (one.toolCalls ?? []).map(call => [call.id, call.function.name] as const) : [])),
  )
  const history = before.flatMap((given, place) => {
    const { data } = message.safeParse(given)
    if (!data) throw wrong(`messages/${place}/content`, wrongPart)
    return historyMessages(data, names, { path: `messages/${place}`, limits })
  })
  if (history.length > maxHistoryMessages) throw wrong('messages', `A new thread takes at most ${maxHistoryMessages} messages`)
  return history
}

function historyMessages(
  one: ClientMessage,
  names: ReadonlyMap<string, string>,
  { path, limits }: { path: string; limits: Limits },
): HistoryMessage[] {
  const metadata: JsonObject = { 'ag-ui': { message: one.id } }
  switch (one.role) {
    case 'user':
      return contentsOf(one.content).map(given => ({ author: 'user', content: given, metadata }))
    case 'assistant':
      return [
        ...(one.content ? [{ author: 'agent' as const, content: text(one.content), metadata }] : []),
        ...(one.toolCalls ?? []).map(({ id: call, function: { name, arguments: given } }): HistoryMessage => {
          return { author: 'agent', content: toolRequest(call, name, argumentsOf(given, path, limits)), metadata: { 'ag-ui': { call } } }
        }),
      ]
    case 'tool': {
      const name = names.get(one.toolCallId) ?? ''
      return [{ author: 'agent', content: toolResponse(one.toolCallId, name, resultText(one.content)), metadata }]
    }
    case 'reasoning':
      return [{ author: 'agent', content: reasoning([], [one.content]), metadata }]
    case 'system':
    case 'developer':
      return [{ author: 'system', content: text(one.content), metadata }]
    case 'activity':
      return []
    default:
      return one satisfies never
  }
}

/** The params of the agent: `forwardedProps`, and the tools and the context of the page, as far as the agent's params have such fields. */
export function paramsOf(settings: AgentSettings, { forwardedProps, tools, context }: RunInput): JsonObject | undefined {
  const fields = { ...forwardedProps, ...(tools?.length && { tools }), ...(context?.length && { context }) }
  const params = fittingParams(settings, fields)
  return Object.keys(params).length > 0 ? params : undefined
}

function contentsOf(given: z.output<typeof content>): Content[] {
  if (typeof given === 'string') return [text(given)]
  return given.map((one): Content => {
    if (one.type === 'text') return text(one.text)
    const { type, source: from } = one
    const mimeType = from.mimeType ?? (type === 'document' ? 'application/octet-stream' : `${type}/*`)
    return { type: 'media', mimeType, [from.type]: from.value }
  })
}

function resultText(given: string | unknown[]): string {
  return typeof given === 'string' ? given : JSON.stringify(given)
}

function argumentsOf(given: string, path: string, limits: Limits): Json {
  const value = parseCallerText(given === '' ? '{}' : given, limits, `/${path}/toolCalls`)
  if (value === undefined) throw wrong(`${path}/toolCalls`, 'Arguments have to be JSON')
  return value
}

function wrong(path: string, reason: string): RivuletError {
  return new RivuletError('validation_failed', 'Request validation failed', { details: [{ path: `/${path}`, reason }] })
}
