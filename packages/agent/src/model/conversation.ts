/**
 * A history in the form that every provider accepts: each tool call is followed directly by exactly one result.
 *
 * Only complete messages are included. A call without a result gets an error as its result, a result without a call is dropped, and the
 * second of two results is dropped. So a conversation that was interrupted anywhere can be continued.
 */
import { type ContentOf, type JsonObject, text } from '@rivulet/protocol'
import type { HistoryMessage } from './model.ts'

export type UserContent = ContentOf<'text'> | ContentOf<'media'>
export type AgentContent = { content: ContentOf<'text' | 'reasoning' | 'tool_request'>; metadata: JsonObject }

export type Exchange =
  | { by: 'system'; text: string }
  | { by: 'user'; contents: UserContent[] }
  | { by: 'agent'; contents: AgentContent[] }
  | { by: 'tools'; results: ContentOf<'tool_response'>[] }

const lost = 'The call was interrupted before it had a result.'

export function user(words: string): HistoryMessage {
  return { author: 'user', content: text(words) }
}

export function system(words: string): HistoryMessage {
  return { author: 'system', content: text(words) }
}

export function exchangesOf(history: readonly HistoryMessage[]): Exchange[] {
  const messages = history.filter(({ status = 'complete' }) => status === 'complete')
  const results = pairResults(messages)
  const exchanges: Exchange[] = []
  /** The calls of the agent's latest exchange. */
  let calls: ContentOf<'tool_request'>[] = []
  for (const message of messages) {
    if (message.author === 'agent' && !isNotice(message)) addAgentMessage(message)
    else addInput(message)
  }
  close()
  return exchanges

  function addInput({ author, content }: HistoryMessage): void {
    const input = inputOf(content)
    if (!input) return
    close()
    const last = exchanges.at(-1)
    if (author === 'system') {
      if (input.type === 'text') exchanges.push({ by: 'system', text: input.text })
    } else if (last?.by === 'user') last.contents.push(input)
    else exchanges.push({ by: 'user', contents: [input] })
  }

  function addAgentMessage(message: HistoryMessage): void {
    const { metadata = {} } = message
    const content = message.content.type === 'data' ? text(JSON.stringify(message.content.data)) : message.content
    if (content.type === 'tool_response') close()
    if (content.type === 'tool_response' || content.type === 'media' || (content.type === 'text' && content.text === '')) return
    if (content.type === 'tool_request') calls.push(content)
    const last = exchanges.at(-1)
    if (last?.by === 'agent') last.contents.push({ content, metadata })
    else exchanges.push({ by: 'agent', contents: [{ content, metadata }] })
  }

  /** Adds the results of the latest agent exchange's calls behind it. */
  function close(): void {
    if (calls.length === 0) return
    exchanges.push({ by: 'tools', results: calls.map(call => results.get(call) ?? interrupted(call)) })
    calls = []
  }
}

/** The result of a background tool is for the model, not by it. */
function isNotice({ metadata }: HistoryMessage): boolean {
  return metadata?.notice === 'background'
}

/** Pairs each call with the first result after it that has its id, because a conversation may use an id more than once. */
function pairResults(messages: readonly HistoryMessage[]): Map<ContentOf<'tool_request'>, ContentOf<'tool_response'>> {
  const pairs = new Map<ContentOf<'tool_request'>, ContentOf<'tool_response'>>()
  const pending = new Map<string, ContentOf<'tool_request'>[]>()
  for (const { content } of messages) {
    if (content.type === 'tool_request') callsWith(content.callId).push(content)
    if (content.type !== 'tool_response') continue
    const call = callsWith(content.callId).shift()
    if (call) pairs.set(call, content)
  }
  return pairs

  function callsWith(id: string): ContentOf<'tool_request'>[] {
    const known = pending.get(id) ?? []
    pending.set(id, known)
    return known
  }
}

function interrupted({ callId, name }: ContentOf<'tool_request'>): ContentOf<'tool_response'> {
  return { type: 'tool_response', callId, name, content: lost, isError: true }
}

function inputOf(content: HistoryMessage['content']): UserContent | null {
  switch (content.type) {
    case 'text':
      return content.text === '' ? null : content
    case 'media':
      return content
    case 'data':
      return text(JSON.stringify(content.data))
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
      return null
    default:
      return content satisfies never
  }
}

/** A tool's result as text for a model. */
export function resultText({ content }: ContentOf<'tool_response'>): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}
