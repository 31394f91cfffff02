/**
 * The interface of a model: it takes a conversation and returns a stream of the protocol's updates.
 *
 * Each content block is a message, numbered 0, 1, 2 … in order of appearance. Each is started, extended and closed; the last close carries
 * the stop reason and the usage. An abort closes open messages as `aborted` and ends the stream without an error. A failure closes them as
 * `failed`; then iterators throw and the result rejects with an `AgentError` that holds the partial result.
 */
import type { ContentOf, JsonObject, Message, StopReason, Update, Usage } from '@rivulet/protocol'
import type { EventStream } from './event-stream.ts'

export type Model = {
  readonly name: string
  stream(request: ModelRequest, options?: ModelOptions): ModelStream
}

export type ModelOptions = {
  /** In place of `signal` and `traceparent`: the turn's. */
  turn?: CallingTurn | undefined
  signal?: AbortSignal | undefined
  /** The trace of the call. Models over HTTP send it in the header `traceparent`. */
  traceparent?: string | undefined
}

/** What a call needs of a turn. A `Turn` of @rivulet/worker fits. */
type CallingTurn = { readonly signal: AbortSignal; readonly span: { readonly traceparent: string } }

export type ModelStream = EventStream<Update, ModelResult>

export type ModelRequest = {
  messages: readonly HistoryMessage[]
  /** Instructions that come before the messages. */
  system?: string
  tools?: readonly ToolDefinition[]
  /** Default: the model decides. */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string }
  maxOutputTokens?: number
  /** JSON Schema of the text: an object, as JSON. Providers follow it as well as they can. */
  schema?: JsonObject
  temperature?: number
}

/** The part of a message that a model needs. A stored `Message` fits. Aborted and failed messages are not sent to the model. */
export type HistoryMessage = Pick<Message, 'author' | 'content'> & Partial<Pick<Message, 'status' | 'metadata'>>

/** A message of a stream: a `Message` without task, turn, attempt and times. */
export type SpokenMessage = Pick<
  Message,
  'index' | 'author' | 'content' | 'metadata' | 'status' | 'stopReason' | 'usage' | 'response' | 'error'
>

export type ModelResult = {
  messages: SpokenMessage[]
  /** The text of all text messages, joined. */
  text: string
  /** The calls whose arguments are complete JSON, in order. */
  toolCalls: ContentOf<'tool_request'>[]
  usage?: Usage
  stopReason: StopReason
  /** The stop reason in the provider's spelling. */
  rawStopReason?: string
}

export type ToolDefinition = {
  readonly name: string
  readonly description: string
  /** JSON schema of the arguments: an object. */
  readonly parameters: JsonObject
}
