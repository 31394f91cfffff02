/**
 * Collects the events of one response into an assistant's turn. Arguments stay text until `finish`, which parses them once; the accumulator
 * cannot be used after that. A large index costs no more memory than a small one.
 */
import type { Json } from '@rivulet/protocol'

export type StreamEvent =
  | { type: 'TextDelta'; text: string }
  | { type: 'ToolCallStart'; index: number; id: string; name: string }
  | { type: 'ToolCallDelta'; index: number; arguments: string }
  | { type: 'Done' }

export type PartialToolCall = { id: string; name: string; arguments: string }
export type ToolCall = { id: string; name: string; arguments: Json }
export type AssistantTurn = { text: string | null; tool_calls: ToolCall[]; stop_reason: 'Stop' | 'ToolUse' }

export class StreamAccumulator {
  #text = ''
  #calls = new Map<number, PartialToolCall>()
  #isFinished = false

  feed(event: StreamEvent): void {
    this.#checkOpen()
    switch (event.type) {
      case 'TextDelta':
        this.#text += event.text
        return
      case 'ToolCallStart':
        this.#calls.set(event.index, { ...this.#callAt(event.index), id: event.id, name: event.name })
        return
      case 'ToolCallDelta': {
        const call = this.#callAt(event.index)
        this.#calls.set(event.index, { ...call, arguments: call.arguments + event.arguments })
        return
      }
      case 'Done':
        return
      default:
        event satisfies never
    }
  }

  finish(): AssistantTurn {
    this.#checkOpen()
    this.#isFinished = true
    const inOrder = [...this.#calls].sort(([a], [b]) => a - b).map(([, call]) => call)
    const tool_calls = inOrder.filter(({ name }) => name !== '').map(call => ({ ...call, arguments: parseOrNull(call.arguments) }))
    return { text: this.#text || null, tool_calls, stop_reason: tool_calls.length > 0 ? 'ToolUse' : 'Stop' }
  }

  #callAt(index: number): PartialToolCall {
    return this.#calls.get(index) ?? { id: '', name: '', arguments: '' }
  }

  #checkOpen(): void {
    if (this.#isFinished) throw new Error('The accumulator is finished; create a new one for each response')
  }
}

function parseOrNull(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
