/** The events of the SDK's models, as far as this module uses them, and those of its two providers below. */

/** An event of `getStreamedResponse`. */
export type ModelEvent =
  | { type: 'response_started' }
  | { type: 'output_text_delta'; delta: string; itemId?: string }
  | { type: 'response_done'; response: DoneResponse }
  | { type: 'model'; event: unknown }

export type DoneResponse = {
  id?: string
  requestId?: string
  output: OutputItem[]
  usage?: TokenCounts
  rawUsage?: unknown
  providerData?: unknown
}

export type TokenCounts = { inputTokens?: number; outputTokens?: number; totalTokens?: number; [detail: string]: unknown }

export type OutputItem =
  | { type: 'message'; content: ({ type: 'output_text'; text: string } | { type: 'refusal'; refusal: string } | { type: string })[] }
  | { type: 'reasoning'; content: { text: string }[]; rawContent?: { text: string }[] }
  | { type: 'function_call'; callId: string; name: string; arguments: string }
  | { type: string }

/** An item of a request's input that is the result of a call. */
export type CallResult = { type: 'function_call_result'; callId: string; name: string; output: unknown }

/** A piece of something that the SDK hands on only when it is whole. */
export type Piece =
  | { type: 'reasoning'; kind: 'summary' | 'content'; index: number; text: string }
  | { type: 'call'; key: string; callId?: string; name?: string; text: string }
  | { type: 'stop'; reason: string; isCutOff?: boolean }

/** The pieces in an event of OpenAI's Responses or Chat Completions; other events have no pieces. */
export function piecesOf(raw: unknown): Piece[] {
  const event = fieldsOf(raw)
  switch (event.type) {
    case 'response.reasoning_summary_text.delta':
      return [{ type: 'reasoning', kind: 'summary', index: numberOf(event.summary_index), text: textOf(event.delta) }]
    case 'response.reasoning_text.delta':
      return [{ type: 'reasoning', kind: 'content', index: numberOf(event.content_index), text: textOf(event.delta) }]
    case 'response.output_item.added': {
      const item = fieldsOf(event.item)
      if (item.type !== 'function_call') return []
      return [{ type: 'call', key: textOf(item.id), callId: textOf(item.call_id), name: textOf(item.name), text: textOf(item.arguments) }]
    }
    case 'response.incomplete':
      return [{ type: 'stop', reason: textOf(fieldsOf(fieldsOf(event.response).incomplete_details).reason) || 'length', isCutOff: true }]
    case 'response.function_call_arguments.delta':
      return [{ type: 'call', key: textOf(event.item_id), text: textOf(event.delta) }]
    default:
      return Array.isArray(event.choices) ? piecesOfChoice(fieldsOf(event.choices[0])) : []
  }
}

function piecesOfChoice(choice: Record<string, unknown>): Piece[] {
  const { reasoning, reasoning_content, tool_calls } = fieldsOf(choice.delta)
  const thought = textOf(reasoning) || textOf(reasoning_content)
  const calls = Array.isArray(tool_calls) ? tool_calls.map(fieldsOf) : []
  return [
    ...(thought ? [{ type: 'reasoning', kind: 'content', index: 0, text: thought } as const] : []),
    ...calls.map(call => {
      const { name, arguments: text } = fieldsOf(call.function)
      return { type: 'call', key: String(call.index), callId: textOf(call.id), name: textOf(name), text: textOf(text) } as const
    }),
    ...(typeof choice.finish_reason === 'string' ? [{ type: 'stop', reason: choice.finish_reason } as const] : []),
  ]
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
