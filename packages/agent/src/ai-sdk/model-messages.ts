/**
 * `streamText({ messages: toModelMessages(await turn.history()) })`: a history as the messages of a request of the AI SDK.
 *
 * It is repaired as for our own models: each call is followed by exactly one result, and only complete messages are included.
 */
import type { ContentOf, Json } from '@rivulet/protocol'
import { type AgentContent, exchangesOf, type UserContent } from '../model/conversation.ts'
import type { HistoryMessage } from '../model/model.ts'

/** Assignable to `ModelMessage` of the AI SDK. */
export type AiSdkMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: UserPart[] }
  | { role: 'assistant'; content: AssistantPart[] }
  | { role: 'tool'; content: ToolPart[] }

type TextPart = { type: 'text'; text: string }
type UserPart = TextPart | { type: 'file'; mediaType: string; data: string | URL; filename?: string }
type AssistantPart =
  | TextPart
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: Json }
type ToolPart = { type: 'tool-result'; toolCallId: string; toolName: string; output: ToolOutput }
type ToolOutput = { type: 'text' | 'error-text'; value: string } | { type: 'json' | 'error-json'; value: Json }

export function toModelMessages(history: readonly HistoryMessage[]): AiSdkMessage[] {
  return exchangesOf(history).map(exchange => {
    switch (exchange.by) {
      case 'system':
        return { role: 'system', content: exchange.text }
      case 'user':
        return { role: 'user', content: exchange.contents.map(userPart) }
      case 'agent':
        return { role: 'assistant', content: exchange.contents.map(assistantPart) }
      case 'tools':
        return { role: 'tool', content: exchange.results.map(toolPart) }
      default:
        return exchange satisfies never
    }
  })
}

/** A stored file has no bytes here, unless the history was read `withFiles`; the model reads its name. */
function userPart(content: UserContent): UserPart {
  if (content.type === 'text') return { type: 'text', text: content.text }
  const { mimeType: mediaType, data, url, name, file } = content
  const named = name === undefined ? {} : { filename: name }
  if (url !== undefined) return { type: 'file', mediaType, data: new URL(url), ...named }
  if (file !== undefined) return { type: 'text', text: `[file ${name ?? file}, ${mediaType}]` }
  return { type: 'file', mediaType, data: data ?? '', ...named }
}

function assistantPart({ content }: AgentContent): AssistantPart {
  if (content.type === 'text') return { type: 'text', text: content.text }
  if (content.type === 'reasoning') return { type: 'reasoning', text: [...content.summary, ...content.content].join('\n') }
  return { type: 'tool-call', toolCallId: content.callId, toolName: content.name, input: content.arguments }
}

function toolPart({ callId: toolCallId, name: toolName, content, isError }: ContentOf<'tool_response'>): ToolPart {
  const output: ToolOutput =
    typeof content === 'string'
      ? { type: isError ? 'error-text' : 'text', value: content }
      : { type: isError ? 'error-json' : 'json', value: content }
  return { type: 'tool-result', toolCallId, toolName, output }
}
