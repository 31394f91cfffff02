/**
 * The messages of a task as AG-UI's. They are a function of the messages, so a stream, a snapshot and the rows have the same ones.
 *
 * A message has the id that its client gave it, or `<task>:<index>`. A call has the id of its message, because agents may use the same call id in
 * every turn, and AG-UI's client keeps one call per id in a thread.
 */
import type { Content, ContentOf, Json, JsonObject, Message } from '@rivulet/protocol'

/** In the metadata of a message that came from a client of AG-UI. */
type ClientIds = { message?: string; run?: string; call?: string }

type Metadata = { metadata?: JsonObject }
type Part = { type: 'text'; text: string } | { type: 'image' | 'audio' | 'video' | 'document'; source: Source }
type Source = { type: 'data' | 'url' | 'file'; value: string; mimeType?: string | undefined; provider?: string | undefined }
type Call = { id: string; type: 'function'; function: { name: string; arguments: string } } & Metadata

export type AgUiMessage = { id: string } & Metadata &
  (
    | { role: 'assistant'; toolCalls: Call[] }
    | { role: 'assistant' | 'system' | 'reasoning'; content: string }
    | { role: 'user'; content: string | Part[] }
    | { role: 'tool'; toolCallId: string; content: string }
    | { role: 'activity'; activityType: ActivityType; content: JsonObject }
  )

type ActivityType = 'data' | 'media' | 'tool-progress'

/** The activities that a snapshot has all of. */
export const storedActivities: readonly ActivityType[] = ['data', 'media', 'tool-progress']

export function clientIdsOf({ metadata }: Pick<Message, 'metadata'>): ClientIds {
  const ids = metadata['ag-ui']
  if (typeof ids !== 'object' || ids === null || Array.isArray(ids)) return {}
  return Object.fromEntries(Object.entries(ids).filter(([, value]) => typeof value === 'string'))
}

export function idOf(message: Message): string {
  return clientIdsOf(message).message ?? `${message.task}:${message.index}`
}

/** The id of the call that a request makes. */
export function callIdOf(request: Message): string {
  return clientIdsOf(request).call ?? idOf(request)
}

/** The messages of a thread, in order. What is not closed is as far as it is. */
export function agUiMessages(messages: readonly Message[]): AgUiMessage[] {
  const requests = requestsOf(messages)
  const views: AgUiMessage[] = []
  for (const next of messages.flatMap(message => viewsOf(message, requests.get(message.index)))) {
    const last = views.at(-1)
    // A message of a client that has several parts is several messages here.
    if (last?.role === 'user' && next.role === 'user' && last.id === next.id)
      last.content = [...partsOf(last.content), ...partsOf(next.content)]
    else views.push(next)
  }
  return views
}

function partsOf(content: string | Part[]): Part[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/**
 * The request of each response, by the index of the response. A response belongs to the first request of its turn with its call id that has no
 * response yet; one without a request is not in the map.
 */
export function requestsOf(messages: readonly Message[]): Map<number, Message> {
  const open: Message[] = []
  const requests = new Map<number, Message>()
  for (const message of messages) {
    const { content, turn } = message
    if (content.type === 'tool_request') open.push(message)
    if (content.type !== 'tool_response') continue
    const place = open.findIndex(
      asked => asked.turn === turn && asked.content.type === 'tool_request' && asked.content.callId === content.callId,
    )
    const [request] = place < 0 ? [] : open.splice(place, 1)
    if (request) requests.set(message.index, request)
  }
  return requests
}

function viewsOf(message: Message, request: Message | undefined): AgUiMessage[] {
  const { author, content } = message
  const id = idOf(message)
  if (author === 'user') return [{ id, role: 'user', content: userContent(content) }]
  switch (content.type) {
    case 'text':
      return [{ id, role: author === 'system' ? 'system' : 'assistant', content: content.text, ...shownMetadata(message) }]
    case 'reasoning':
      return [{ id, role: 'reasoning', content: reasoningText(content), ...shownMetadata(message) }]
    case 'tool_request':
      return [callMessage(id, { id: callIdOf(message), name: content.name, args: argumentsOf(message, content) }, shownMetadata(message))]
    case 'tool_response':
      return [
        ...(request ? [] : [callMessage(`${id}:call`, { id: `${id}:call`, name: content.name, args: '' })]),
        ...(message.status === 'streaming' ? [] : [resultMessage(message, content, request)]),
      ]
    case 'data':
    case 'media':
      return [activityOf(message, content)]
    default:
      return content satisfies never
  }
}

function callMessage(id: string, call: { id: string; name: string; args: string }, metadata: Metadata = {}): AgUiMessage {
  return {
    id,
    role: 'assistant',
    toolCalls: [{ id: call.id, type: 'function', function: { name: call.name, arguments: call.args }, ...metadata }],
  }
}

type ResultMessage = Extract<AgUiMessage, { role: 'tool' }>

export function resultMessage(message: Message, content: ContentOf<'tool_response'>, request: Message | undefined): ResultMessage {
  const id = idOf(message)
  const { metadata } = shownMetadata(message)
  const shown = { ...metadata, ...(content.isError && { isError: true }) }
  return {
    ...{ id, role: 'tool', toolCallId: request ? callIdOf(request) : `${id}:call`, content: textOf(content.content) },
    ...(Object.keys(shown).length > 0 && { metadata: shown }),
  }
}

type ActivityMessage = Extract<AgUiMessage, { role: 'activity' }>

export function activityOf(message: Message, content: ContentOf<'data' | 'media'>): ActivityMessage {
  const { type: activityType, ...fields } = content
  const shown = Object.fromEntries(Object.entries(fields).filter((field): field is [string, Json] => field[0] !== 'raw'))
  return { id: idOf(message), role: 'activity', activityType, content: shown, ...shownMetadata(message) }
}

/** The metadata of a message that is closed: until then it may change. Without the ids of AG-UI's clients. */
export function shownMetadata({ status, metadata }: Message): Metadata {
  const { 'ag-ui': _, ...shown } = metadata
  return status === 'streaming' || Object.keys(shown).length === 0 ? {} : { metadata: shown }
}

/** The parts of a reasoning as one text. */
export function reasoningText({ summary, content }: ContentOf<'reasoning'>): string {
  return [...summary, ...content].filter(part => part !== '').join(partSeparator)
}

export const partSeparator = '\n\n'

/** While a call is open, the fragments of its JSON, if it has come as such. */
export function argumentsOf({ status }: Message, { arguments: value, raw }: ContentOf<'tool_request'>): string {
  return raw ?? (status === 'streaming' ? '' : JSON.stringify(value))
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function userContent(content: Content): string | Part[] {
  if (content.type === 'text') return content.text
  if (content.type !== 'media') return JSON.stringify('data' in content ? content.data : content)
  const { mimeType, url, data, file } = content
  const source: Source =
    url !== undefined
      ? { type: 'url', value: url, mimeType }
      : file !== undefined
        ? { type: 'file', value: file, provider: 'rivulet', mimeType }
        : { type: 'data', value: data ?? '', mimeType }
  return [{ type: partTypeOf(mimeType), source }]
}

function partTypeOf(mimeType: string): 'image' | 'audio' | 'video' | 'document' {
  const [kind] = mimeType.split('/')
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}
