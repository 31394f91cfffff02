/** A plain function that talks to a model, as a `Model`: it returns its reply whole, or yields its text in pieces. */
import { type Json, type StopReason, toolRequest, type Update, type Usage } from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import { createEventStream, type EventSink } from './event-stream.ts'
import type { Model, ModelRequest, ModelResult } from './model.ts'
import { createResponseWriter } from './response-writer.ts'

export type ChatReply = {
  text?: string
  toolCalls?: readonly { callId: string; name: string; arguments: Json }[]
  usage?: Usage
  /** Default: `tool_use` with calls, else `stop`. */
  stopReason?: StopReason
}

export type Chat = (
  request: ModelRequest,
  options: { signal: AbortSignal; traceparent?: string | undefined },
) => string | ChatReply | Promise<string | ChatReply> | AsyncIterable<string>

export function chatModel(chat: Chat, { name = 'chat' }: { name?: string } = {}): Model {
  return {
    name,
    stream: (request, { turn, signal = turn?.signal, traceparent = turn?.span.traceparent } = {}) =>
      createEventStream(sink => respond(request, sink, traceparent), { signal }),
  }

  async function respond(
    request: ModelRequest,
    { emit, ready, signal }: EventSink<Update>,
    traceparent: string | undefined,
  ): Promise<ModelResult> {
    const writer = createResponseWriter(emit)
    try {
      signal.throwIfAborted()
      const { toolCalls = [], usage, stopReason = 'stop' } = await read()
      for (const { callId, name: tool, arguments: args } of toolCalls) {
        const index = writer.open(toolRequest(callId, tool))
        writer.append(index, { type: 'tool_request', text: JSON.stringify(args) })
        writer.close(index)
      }
      return writer.finish({ status: 'complete', stopReason, usage })
    } catch (error) {
      if (signal.aborted) return writer.finish({ status: 'aborted', stopReason: 'aborted' })
      const failure = AgentError.of(error)
      throw failure.withPartial(writer.finish({ status: 'failed', stopReason: 'error', error: failure.failure }))
    }

    async function read(): Promise<ChatReply> {
      const reply = chat(request, { signal, traceparent })
      if (typeof reply !== 'object' || !(Symbol.asyncIterator in reply)) {
        const whole = await reply
        const given = typeof whole === 'string' ? { text: whole } : whole
        writer.flow('text', given.text ?? '')
        return given
      }
      for await (const piece of reply) {
        signal.throwIfAborted()
        writer.flow('text', piece)
        await ready()
      }
      return {}
    }
  }
}
