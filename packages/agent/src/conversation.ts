/**
 * A history as every provider wants it: whole exchanges, in which each tool call has exactly one result, right behind it.
 *
 * Only complete messages count. A call that nobody answered gets an error for a result, a result without a call is left out, and of two
 * results the first counts: a conversation that was interrupted anywhere can always go on.
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
  for (const message of messages) {
    if (message.author === 'agent') addAgentMessage(message)
    else addInput(message)
  }
  close()
  return exchanges

  function addInput({ author, content }: HistoryMessage): void {
    const said = inputOf(content)
    if (!said) return
    close()
    const last = exchanges.at(-1)
    if (author === 'system') {
      if (said.type === 'text') exchanges.push({ by: 'system', text: said.text })
    } else if (last?.by === 'user') last.contents.push(said)
    else exchanges.push({ by: 'user', contents: [said] })
  }

  function addAgentMessage(message: HistoryMessage): void {
    const { content, metadata = {} } = message
    const said = content.type === 'data' ? text(JSON.stringify(content.data)) : content
    if (said.type === 'tool_response') close()
    if (said.type === 'tool_response' || said.type === 'media' || (said.type === 'text' && said.text === '')) return
    const last = exchanges.at(-1)
    if (last?.by === 'agent') last.contents.push({ content: said, metadata })
    else exchanges.push({ by: 'agent', contents: [{ content: said, metadata }] })
  }

  /** Puts the results behind the calls that the agent has just made. */
  function close(): void {
    const last = exchanges.at(-1)
    if (last?.by !== 'agent') return
    const answers = last.contents.flatMap(({ content }) =>
      content.type === 'tool_request' ? [results.get(content) ?? interrupted(content)] : [],
    )
    if (answers.length > 0) exchanges.push({ by: 'tools', results: answers })
  }
}

/** Each call with the first result after it that carries its id: ids need not be unique over a whole conversation. */
function pairResults(messages: readonly HistoryMessage[]): Map<ContentOf<'tool_request'>, ContentOf<'tool_response'>> {
  const pairs = new Map<ContentOf<'tool_request'>, ContentOf<'tool_response'>>()
  const unanswered = new Map<string, ContentOf<'tool_request'>[]>()
  for (const { content } of messages) {
    if (content.type === 'tool_request') unanswered.set(content.callId, [...(unanswered.get(content.callId) ?? []), content])
    if (content.type !== 'tool_response') continue
    const call = unanswered.get(content.callId)?.shift()
    if (call) pairs.set(call, content)
  }
  return pairs
}

function interrupted({ callId, name }: ContentOf<'tool_request'>): ContentOf<'tool_response'> {
  return { type: 'tool_response', callId, name, content: lost, isError: true }
}

function inputOf(content: HistoryMessage['content']): UserContent | null {
  if (content.type === 'text') return content.text === '' ? null : content
  if (content.type === 'media') return content
  return content.type === 'data' ? text(JSON.stringify(content.data)) : null
}

/** A tool's result as text for a model. */
export function resultText({ content }: ContentOf<'tool_response'>): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}
