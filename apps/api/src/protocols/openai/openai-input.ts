/**
 * The inputs of OpenAI's APIs as messages. The last user message is the input of the turn; everything before it is history.
 *
 * A message may have several parts. Texts that follow each other are joined; each other part is a content of its own, so a message with a text and an image
 * is two inputs of one turn.
 */

import type { HistoryMessage } from '@rivulet/contract/fields'
import type { ChatMessage, chatFilePart, contentSchema, InputItem, itemReference, partSchema, WholeItem } from '@rivulet/contract/openai'
import {
  type Content,
  type ContentOf,
  type FileId,
  type Json,
  type Limits,
  maxInputs,
  RivuletError,
  reasoning,
  text,
  toolRequest,
  toolResponse,
} from '@rivulet/protocol'
import type { z } from 'zod'
import { parseCallerText } from '../../http/requests/json-body.ts'

const roles = { user: 'user', assistant: 'agent', system: 'system', developer: 'system' } as const
export function isReference(item: InputItem): item is z.output<typeof itemReference> {
  return !('role' in item) && (item.type === 'item_reference' || item.type === null || item.type === undefined)
}

/** The messages that one item of a request stands for: one for each of its contents. */
type MessageGroup = HistoryMessage[]

/** Without an input, the agent responds to the history. */
type Conversation = { history: HistoryMessage[]; input?: Content | Content[] }

/** A conversation that another agent has handed over ends with the result of its call. */
export function handedOver(groups: readonly MessageGroup[]): Conversation {
  return { history: groups.flat() }
}

/** @param param the field of the request, for the error */
export function conversationOf(groups: readonly MessageGroup[], param: string): Required<Conversation> {
  const last = groups.at(-1) ?? []
  if (last[0]?.author !== 'user') throw wrong(param, 'It has to end with a message of the user')
  return { history: groups.slice(0, -1).flat(), input: inputOf(last, param) }
}

/** A request adds messages of the user to a conversation that exists, and instructions beside them. */
export function additionOf(groups: readonly MessageGroup[], param: string): { input: Content | Content[]; instructions: string[] } {
  const { history } = conversationOf(groups, param)
  const fault = history.find(({ author, content }) => author === 'agent' || (author === 'system' && content.type !== 'text'))
  if (fault) throw wrong(param, 'The conversation has a history; send only messages of the user, and texts of the system')
  const messages = groups.flat()
  const instructions = messages.flatMap(({ author, content }) => (author === 'system' && content.type === 'text' ? [content.text] : []))
  return {
    input: inputOf(
      messages.filter(({ author }) => author === 'user'),
      param,
    ),
    instructions,
  }
}

function inputOf(messages: readonly HistoryMessage[], param: string): Content | Content[] {
  const contents = messages.map(({ content }) => content)
  if (contents.length > maxInputs) throw wrong(param, `A turn has at most ${maxInputs} inputs, one for each text, image or file`)
  return contents.length === 1 && contents[0] ? contents[0] : contents
}

export function messagesOfItems(items: readonly WholeItem[], limits: Limits): MessageGroup[] {
  const names = new Map(items.flatMap(item => ('call_id' in item && 'name' in item ? [[item.call_id, item.name] as const] : [])))
  return items.map((item, place): MessageGroup => {
    const path = `input/${place}`
    if ('role' in item) return historyMessages(roles[item.role], item.content, path)
    switch (item.type) {
      case 'function_call':
        return [{ author: 'agent', content: toolRequest(item.call_id, item.name, argumentsOf(item.arguments, path, limits)) }]
      case 'function_call_output':
        return [{ author: 'agent', content: toolResponse(item.call_id, names.get(item.call_id) ?? '', outputOf(item.output)) }]
      // The call has the arguments that were approved.
      case 'mcp_approval_request':
      case 'mcp_approval_response':
        return []
      case 'mcp_call':
        return [
          { author: 'agent', content: toolRequest(item.id, item.name, argumentsOf(item.arguments, path, limits)) },
          { author: 'agent', content: toolResponse(item.id, item.name, errorOf(item.error) ?? item.output ?? null, Boolean(item.error)) },
        ]
      // The item has no other type of image; OpenAI's own are of this one, too.
      case 'image_generation_call':
        return item.result ? [{ author: 'agent', content: mediaOf(`data:image/png;base64,${item.result}`, 'image/png', path) }] : []
      case 'reasoning': {
        const texts = (parts: { text: string }[]) => parts.map(part => part.text)
        return [{ author: 'agent', content: reasoning(texts(item.summary), texts(item.content ?? [])) }]
      }
      default:
        return item satisfies never
    }
  })
}

/** An error is a text in older versions of the API, and an object in newer ones. */
function errorOf(error: Extract<WholeItem, { type: 'mcp_call' }>['error']): Json | undefined {
  if (typeof error !== 'object' || error === null) return error ?? undefined
  return JSON.parse(JSON.stringify(error.content ?? error.message ?? error))
}

export function messagesOfChat(messages: readonly ChatMessage[], limits: Limits): MessageGroup[] {
  const calls = messages.flatMap(message => ('tool_calls' in message ? (message.tool_calls ?? []) : []))
  const names = new Map(calls.map(({ id, function: { name } }) => [id, name]))
  return messages.map((message, place): MessageGroup => {
    const path = `messages/${place}`
    if (message.role === 'tool') {
      const name = names.get(message.tool_call_id) ?? ''
      return [{ author: 'agent', content: toolResponse(message.tool_call_id, name, outputOf(message.content)) }]
    }
    const requests = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }): HistoryMessage => {
      return { author: 'agent', content: toolRequest(id, name, argumentsOf(given, path, limits)) }
    })
    return [...(message.content ? historyMessages(roles[message.role], message.content, path) : []), ...requests]
  })
}

/** The result of a tool: a text, or the parts as they are, if one of them is not a text. */
export function outputOf(content: z.output<typeof contentSchema>): Json {
  if (typeof content === 'string') return content
  const texts = content.flatMap(part => ('text' in part ? [part.text] : []))
  return texts.length === content.length ? texts.join('\n\n') : JSON.parse(JSON.stringify(content))
}

function historyMessages(author: HistoryMessage['author'], content: z.output<typeof contentSchema>, path: string): HistoryMessage[] {
  return contentsOf(content, path).map(one => ({ author, content: one }))
}

function contentsOf(content: z.output<typeof contentSchema>, path: string): Content[] {
  if (typeof content === 'string') return [text(content)]
  const contents: Content[] = []
  for (const [place, part] of content.entries()) {
    const next = contentOf(part, `${path}/content/${place}`)
    const last = contents.at(-1)
    if (last?.type === 'text' && next.type === 'text') last.text += `\n\n${next.text}`
    else contents.push(next)
  }
  return contents
}

function contentOf(part: z.output<typeof partSchema>, path: string): Content {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return text(part.text)
    case 'refusal':
      return text(part.refusal)
    case 'input_image':
      return part.file_id ? storedFile(part.file_id) : mediaOf(part.image_url ?? '', 'image/*', path)
    case 'image_url':
      return mediaOf(part.image_url.url, 'image/*', path)
    case 'input_file':
      return fileOf(part, path, part.file_url)
    case 'file':
      return fileOf(part.file, path)
    case 'input_audio': {
      const { data, format } = part.input_audio
      const mimeType = format === 'mp3' ? 'audio/mpeg' : 'audio/wav'
      return mediaOf(`data:${mimeType};base64,${data}`, mimeType, path)
    }
    default:
      return part satisfies never
  }
}

function fileOf({ file_data: data, filename: name, file_id: id }: z.output<typeof chatFilePart>['file'], path: string, url = ''): Content {
  if (id) return storedFile(id)
  return { ...mediaOf(data ?? url, 'application/octet-stream', path), ...(name !== undefined && { name }) }
}

/** Its type, name and size are those of the file, which are read before the turn is accepted. */
function storedFile(file: FileId): ContentOf<'media'> {
  return { type: 'media', mimeType: 'application/octet-stream', file }
}

function mediaOf(url: string, mimeType: string, path: string): ContentOf<'media'> {
  if (/^https?:\/\//.test(url)) return { type: 'media', mimeType, url }
  const [, given = '', data = ''] = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/]*={0,2})$/.exec(url) ?? []
  if (given === '' || data === '' || data.length % 4 !== 0) throw wrong(path, 'It has to be an http URL or a data URL in base64')
  return { type: 'media', mimeType: given, data }
}

function argumentsOf(given: string, path: string, limits: Limits): Json {
  const value = parseCallerText(given === '' ? '{}' : given, limits, `/${path}/arguments`)
  if (value === undefined) throw wrong(`${path}/arguments`, 'It has to be JSON')
  return value
}

export function wrong(path: string, reason: string): RivuletError {
  return new RivuletError('validation_failed', 'Request validation failed', { details: [{ path: `/${path}`, reason }] })
}
