/**
 * A streamed run of the SDK as updates, which a handler yields or sends. Its provider is the SDK's own: one that streams through the turn would send
 * everything twice.
 *
 * Text, reasoning and calls stream; results of tools arrive whole. A response that was cut off (`response.incomplete`) ends the stream with its stop
 * reason, where the SDK throws. Every other error is thrown after what was open has been closed as failed.
 */
import { type Content, custom, type Delta, delta, done, full, type JsonObject, start, toolResponse, type Update } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import { fieldsOf, type ModelEvent } from './model-events.ts'
import { plainOutput } from './model-provider.ts'
import { type ChatSpan, startChatSpan } from './model-span.ts'
import { createResponseSender, type ResponseSender, type Speaker } from './response-sender.ts'
import { isToolError } from './tool-errors.ts'

/** The SDK's `RunStreamEvent`. */
export type RunEventLike =
  | { type: 'raw_model_stream_event'; data: object }
  | { type: 'run_item_stream_event'; name: string; item: object }
  | { type: 'agent_updated_stream_event'; agent: { name: string } }

/** @param turn Its span is the parent of the spans of the model's calls. */
export async function* fromOpenAiAgents(events: AsyncIterable<RunEventLike>, turn?: { span: Span }): AsyncGenerator<Update, void, void> {
  let updates: Update[] = []
  const emit = (update: Update) => void updates.push(update)
  const speaker = createSpeaker(emit)
  const calls = new Set<string>()
  let response = null as { sender: ResponseSender; span: ChatSpan } | null
  try {
    for await (const event of events) {
      if (event.type === 'raw_model_stream_event') await hear(event.data as ModelEvent)
      else if (event.type === 'run_item_stream_event') tell(event.name, event.item)
      else emit(custom('agent.started', { agent: event.agent.name }))
      yield* taken()
    }
  } catch (error) {
    await response?.sender.fail(error)
    response?.span.end('error')
    yield* taken()
    if (!response?.sender.isCutOff()) throw error
  }

  function taken(): Update[] {
    const ready = updates
    updates = []
    return ready
  }

  async function hear(event: ModelEvent): Promise<void> {
    response ??= { sender: createResponseSender({ turn: speaker, calls }, undefined), span: startChatSpan(turn?.span, undefined) }
    await response.sender.send(event)
    if (event.type !== 'response_done') return
    response.span.end('done', event.response.usage)
    response = null
  }

  function tell(name: string, item: object): void {
    const { rawItem, sourceAgent, targetAgent } = fieldsOf(item)
    const { type, callId, name: tool, output } = fieldsOf(rawItem)
    if (type === 'function_call_result') {
      const result = plainOutput(output)
      emit(full(speaker.next(), toolResponse(String(callId), String(tool), result, isToolError(result))))
    }
    if (name === 'handoff_occurred')
      emit(custom('agent.handoff', { from: String(fieldsOf(sourceAgent).name), to: String(fieldsOf(targetAgent).name) }))
  }
}

/** A plain text extends a text, or the arguments of a call. */
function extending({ type }: Content, addition: string): Delta {
  return type === 'tool_request' ? { type, text: addition } : { type: 'text', text: addition }
}

/** Messages that are written as updates, numbered in the order in which they open. */
function createSpeaker(emit: (update: Update) => void): Speaker & { next(): number } {
  let count = 0
  return { message, next }

  function next(): number {
    count += 1
    return count - 1
  }

  function message(content: Content, { metadata }: { metadata?: JsonObject } = {}) {
    const index = next()
    emit(start(index, content, metadata))
    return {
      append: async (addition: string | Delta) =>
        emit(delta(index, typeof addition === 'string' ? extending(content, addition) : addition)),
      finish: async (how: Parameters<typeof done>[1] = {}) => emit(done(index, how)),
      replace: async (replacement: Content) => emit(full(index, replacement)),
    }
  }
}
