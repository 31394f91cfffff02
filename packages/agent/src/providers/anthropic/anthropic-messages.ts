/** The request body of Anthropic's Messages API. */
import type { ContentOf, Json, JsonObject } from '@rivulet/protocol'
import { type AgentContent, type Exchange, exchangesOf, resultText, type UserContent } from '../../model/conversation.ts'
import type { ModelRequest } from '../../model/model.ts'
import { mediaForm } from '../media-form.ts'
import { fieldsOf } from '../provider-call.ts'

export function anthropicBody(model: string, request: ModelRequest & { maxOutputTokens: number }): JsonObject {
  const { messages, system, tools = [], toolChoice, maxOutputTokens, temperature, schema } = request
  const exchanges = exchangesOf(messages)
  const instructions = [...(system ? [system] : []), ...exchanges.flatMap(exchange => (exchange.by === 'system' ? [exchange.text] : []))]
  return {
    model,
    stream: true,
    max_tokens: maxOutputTokens,
    ...(instructions.length > 0 && { system: instructions.join('\n\n') }),
    messages: anthropicMessages(exchanges),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    }),
    ...(toolChoice && { tool_choice: choiceOf(toolChoice) }),
    ...(temperature !== undefined && { temperature }),
    ...(schema && { output_config: { format: { type: 'json_schema', schema } } }),
  }
}

type Turn = { role: 'user' | 'assistant'; content: Json[] }

/** Roles must alternate, so tool results and the user input after them are one message. */
function anthropicMessages(exchanges: Exchange[]): Turn[] {
  const turns: Turn[] = []
  for (const exchange of exchanges) {
    const role = exchange.by === 'agent' ? 'assistant' : 'user'
    const content = blocksOf(exchange)
    const last = turns.at(-1)
    if (content.length === 0) continue
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content })
  }
  return turns
}

function blocksOf(exchange: Exchange): Json[] {
  switch (exchange.by) {
    case 'system':
      return []
    case 'user':
      return exchange.contents.map(userBlock)
    case 'agent':
      return exchange.contents.flatMap(agentBlock)
    case 'tools':
      return exchange.results.map(resultBlock)
    default:
      return exchange satisfies never
  }
}

function userBlock(content: UserContent): Json {
  if (content.type === 'text') return { type: 'text', text: content.text }
  const form = mediaForm(content)
  if (form.as === 'text') return { type: 'text', text: form.text }
  const { url, mimeType, data } = form
  const source = url === undefined ? { type: 'base64', media_type: mimeType, data } : { type: 'url', url }
  return { type: form.as === 'pdf' ? 'document' : 'image', source }
}

function agentBlock({ content, metadata }: AgentContent): Json[] {
  switch (content.type) {
    case 'text':
      return [{ type: 'text', text: content.text }]
    case 'tool_request':
      return [{ type: 'tool_use', id: content.callId, name: content.name, input: content.arguments }]
    case 'reasoning': {
      // Anthropic accepts only reasoning that it signed itself.
      const { signature, redacted } = fieldsOf(metadata.anthropic)
      if (typeof redacted === 'string') return [{ type: 'redacted_thinking', data: redacted }]
      return typeof signature === 'string' ? [{ type: 'thinking', thinking: content.content.join(''), signature }] : []
    }
    default:
      return content satisfies never
  }
}

function resultBlock(result: ContentOf<'tool_response'>): Json {
  const content = resultText(result)
  return { type: 'tool_result', tool_use_id: result.callId, ...(content && { content }), ...(result.isError && { is_error: true }) }
}

function choiceOf(choice: NonNullable<ModelRequest['toolChoice']>): Json {
  if (typeof choice !== 'string') return { type: 'tool', name: choice.name }
  return { type: choice === 'required' ? 'any' : choice }
}
