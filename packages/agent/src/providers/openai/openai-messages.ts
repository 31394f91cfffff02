/** The request body of OpenAI's Chat Completions API. */
import type { Json, JsonObject } from '@rivulet/protocol'
import { type AgentContent, type Exchange, exchangesOf, resultText, type UserContent } from '../../model/conversation.ts'
import type { ModelRequest } from '../../model/model.ts'
import { mediaForm } from '../media-form.ts'
import { fieldsOf } from '../provider-call.ts'

export function openaiBody(model: string, request: ModelRequest): JsonObject {
  const { messages, system, tools = [], toolChoice, maxOutputTokens, temperature, schema } = request
  return {
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [...(system ? [{ role: 'system', content: system }] : []), ...exchangesOf(messages).flatMap(openaiMessages)],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } })),
    }),
    ...(toolChoice && { tool_choice: typeof toolChoice === 'string' ? toolChoice : { type: 'function', function: { ...toolChoice } } }),
    ...(maxOutputTokens !== undefined && { max_completion_tokens: maxOutputTokens }),
    ...(schema && { response_format: { type: 'json_schema', json_schema: { name: 'output', schema } } }),
    ...(temperature !== undefined && { temperature }),
  }
}

function openaiMessages(exchange: Exchange): JsonObject[] {
  switch (exchange.by) {
    case 'system':
      return [{ role: 'system', content: exchange.text }]
    case 'user':
      return [{ role: 'user', content: userContent(exchange.contents) }]
    case 'agent':
      return assistantMessage(exchange.contents)
    case 'tools':
      return exchange.results.map(result => ({
        role: 'tool',
        tool_call_id: result.callId,
        content: result.isError ? `Error: ${resultText(result)}` : resultText(result),
      }))
    default:
      return exchange satisfies never
  }
}

function userContent(contents: UserContent[]): Json {
  const [only] = contents
  if (contents.length === 1 && only?.type === 'text') return only.text
  return contents.map(content => {
    if (content.type === 'text') return { type: 'text', text: content.text }
    const form = mediaForm(content)
    if (form.as === 'text') return { type: 'text', text: form.text }
    const url = form.url ?? `data:${form.mimeType};base64,${form.data}`
    // A PDF by its address is not a form of this API.
    if (form.as === 'pdf')
      return form.url === undefined ? { type: 'file', file: { filename: form.name, file_data: url } } : { type: 'text', text: url }
    return { type: 'image_url', image_url: { url } }
  })
}

function assistantMessage(contents: AgentContent[]): JsonObject[] {
  const words = contents.flatMap(({ content }) => (content.type === 'text' ? [content.text] : []))
  const calls = contents.flatMap(({ content }) => {
    if (content.type !== 'tool_request') return []
    return [{ id: content.callId, type: 'function', function: { name: content.name, arguments: JSON.stringify(content.arguments) } }]
  })
  if (words.length === 0 && calls.length === 0) return []
  const details = contents.flatMap(({ metadata }) => fieldsOf(metadata.openai).reasoningDetails ?? []) as Json[]
  return [
    {
      role: 'assistant',
      content: words.length > 0 ? words.join('') : null,
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(details.length > 0 && { reasoning_details: details }),
    },
  ]
}
