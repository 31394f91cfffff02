/** Agents as the tools of MCP, the outcome of a turn as a tool's result, and the waits of a turn as requests for input. */
import type { Agent } from '@rivulet/contract/agents'
import type { AnswerBody } from '@rivulet/contract/waits'
import { type Content, isAnsweredByRequest, type Json, type JsonObject, type Message, type Turn, type Wait } from '@rivulet/protocol'

export type Tool = { name: string; description: string; inputSchema: JsonObject }

export function toolOf({ name, description, params }: Agent): Tool {
  const properties: JsonObject = {
    message: { type: 'string', description: 'What to tell the agent' },
    task: { type: 'string', description: 'The name of a conversation. The same name continues it; without a name, each call is a new one' },
    ...(params && { params }),
  }
  const required = ['message', ...(params && Array.isArray(params.required) && params.required.length > 0 ? ['params'] : [])]
  return { name, description, inputSchema: { type: 'object', properties, required } }
}

type Block = { type: 'text'; text: string } | { type: 'image' | 'audio'; data: string; mimeType: string } | Link
type Link = { type: 'resource_link'; uri: string; name: string; mimeType: string }

export type ToolResult = { content: Block[]; structuredContent?: JsonObject; isError?: true }

export function toolResult({ status, error }: Pick<Turn, 'status' | 'error'>, messages: readonly Message[]): ToolResult {
  const blocks = messages.filter(({ author }) => author === 'agent').flatMap(({ content }) => blocksOf(content))
  if (status !== 'completed') {
    const reason = error?.message ?? `The turn was ${status}`
    return { content: [...blocks, { type: 'text', text: reason }], isError: true }
  }
  const data = messages.flatMap(({ content }) => (content.type === 'data' && isObject(content.data) ? [content.data] : [])).at(-1)
  return { content: blocks, ...(data && { structuredContent: data }) }
}

/** For a client that cannot ask its user: the call returns, because the turn may wait for days. */
export function waitingResult({ task, waits = [] }: Pick<Turn, 'task' | 'waits'>): ToolResult {
  const open = waits.filter(({ kind, status }) => status === 'open' && isAnsweredByRequest(kind))
  const questions = open.map(({ id, title }) => `- ${title} (POST /v1/tasks/${task}/waits/${id}/answer)`)
  const text = [
    'The agent waits for an answer to:',
    ...questions,
    `Answer in the console or by these calls. The turn then continues; GET /v1/tasks/${task}/messages returns what it sends.`,
  ].join('\n')
  return { content: [{ type: 'text', text }] }
}

function blocksOf(content: Content): Block[] {
  switch (content.type) {
    case 'text':
      return content.text === '' ? [] : [{ type: 'text', text: content.text }]
    case 'data':
      return [{ type: 'text', text: JSON.stringify(content.data) }]
    case 'media': {
      const { mimeType, data, url, file, name = 'file' } = content
      const [kind] = mimeType.split('/')
      if (data !== undefined && (kind === 'image' || kind === 'audio')) return [{ type: kind, data, mimeType }]
      const uri = url ?? (file !== undefined ? `rivulet:files/${file}` : `data:${mimeType};base64,${data ?? ''}`)
      return [{ type: 'resource_link', uri, name, mimeType }]
    }
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
      return []
    default:
      return content satisfies never
  }
}

/** The questions of the turn to its caller, by the id of the wait. */
export function inputRequests(waits: readonly Wait[]): Record<string, object> {
  const open = waits.filter(({ kind, status }) => status === 'open' && isAnsweredByRequest(kind))
  return Object.fromEntries(open.map(wait => [wait.id, { method: 'elicitation/create', params: elicitationOf(wait) }]))
}

function elicitationOf({ kind, title, detail, schema, tool, arguments: args }: Wait): object {
  const call = tool === undefined ? [] : [`${tool} ${JSON.stringify(args ?? {})}`]
  const result = { type: 'object', properties: { result: { type: 'string' } }, required: ['result'] }
  const requestedSchema = schema ?? (kind === 'tool' ? result : { type: 'object', properties: {} })
  return { mode: 'form', message: [title, ...(detail === undefined ? [] : [detail]), ...call].join('\n\n'), requestedSchema }
}

type InputResponse = { action: 'accept' | 'decline' | 'cancel'; content?: JsonObject | undefined }

export function answerOf({ kind }: Pick<Wait, 'kind'>, { action, content }: InputResponse): AnswerBody {
  if (action !== 'accept') return { action: 'decline' }
  if (kind === 'approval') return { action: 'accept' }
  return { action: 'accept', content: kind === 'tool' ? (content?.result ?? null) : (content ?? {}) }
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
