/**
 * The body of an AG-UI run. It is lenient: unknown fields are ignored. The history of a thread is in its task, so of `messages` only the last one counts,
 * if it is the user's and new; a new thread gets those before it as its history.
 */
import { type ClientMessage, clientMessage, type content, type RunInput } from '@rivulet/contract/ag-ui'
import type { HistoryMessage } from '@rivulet/contract/fields'
import type { AgentSettings } from '@rivulet/contract/internal'
import {
  type Content,
  type Json,
  type JsonObject,
  type Limits,
  maxHistoryMessages,
  RivuletError,
  reasoning,
  text,
  toolRequest,
  toolResponse,
} from '@rivulet/protocol'
import type { z } from 'zod'
import { parseCallerText } from '../../http/requests/json-body.ts'
import { fittingParams } from '../../store/tasks/accept/check-params.ts'
import type { AgUiMessage } from './ag-ui-message.ts'

const wrongPart = 'Use parts of text, or of media with data, a URL or a file of this API'

/** The last message, if the user sent it. */
export function lastInput({ messages }: RunInput): { message: AgUiMessage; input: Content[] } | null {
  const last = messages.at(-1)
  if (last?.role !== 'user') return null
  const { data } = clientMessage.safeParse(last)
  if (data?.role !== 'user') throw wrong(`messages/${messages.length - 1}/content`, wrongPart)
  return { message: { id: last.id, role: 'user', content: data.content }, input: contentsOf(data.content) }
}

/** The results of the client's tools since the agent's last message, by the id of the call. */
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
    const { data } = clientMessage.safeParse(given)
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
