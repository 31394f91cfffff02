/**
 * What a model is to everybody else: something that answers a conversation with a stream of the protocol's own updates.
 *
 * Messages are numbered 0, 1, 2 … by content block in order of appearance. Each is started, extended and closed; the last close carries the
 * stop reason and the usage. An abort closes what is open as `aborted` and ends the stream in peace. A failure closes it as `failed`, then
 * iterators throw and the result rejects with an `AgentError` that holds what there was.
 */
import type { ContentOf, JsonObject, Message, StopReason, Update, Usage } from '@rivulet/protocol'
import type { EventStream } from './event-stream.ts'

export type Model = {
  readonly name: string
  stream(request: ModelRequest, options?: ModelOptions): ModelStream
}

export type ModelOptions = {
  signal?: AbortSignal | undefined
  /** The trace that the call is a part of: providers over HTTP are told in the header of this name. */
  traceparent?: string | undefined
}

export type ModelStream = EventStream<Update, ModelResult>

export type ModelRequest = {
  messages: readonly HistoryMessage[]
  /** Instructions that come before the messages. */
  system?: string
  tools?: readonly ToolDefinition[]
  /** Default: the model decides. */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string }
  maxOutputTokens?: number
  temperature?: number
}

/** What a model has to know of a message. A stored `Message` is one; aborted and failed ones are not shown to it. */
export type HistoryMessage = Pick<Message, 'author' | 'content'> & Partial<Pick<Message, 'status' | 'metadata'>>

/** A message that was said in a stream: a `Message` without its place on the platform. */
export type SpokenMessage = Pick<Message, 'index' | 'author' | 'content' | 'metadata' | 'status' | 'stopReason' | 'usage' | 'error'>

export type ModelResult = {
  messages: SpokenMessage[]
  /** The text of all text messages, joined. */
  text: string
  /** The calls whose arguments are complete JSON, in order. */
  toolCalls: ContentOf<'tool_request'>[]
  usage?: Usage
  stopReason: StopReason
  /** The provider's own word for it. */
  rawStopReason?: string
}

export type ToolDefinition = {
  readonly name: string
  readonly description: string
  /** JSON schema of the arguments: an object. */
  readonly parameters: JsonObject
}
