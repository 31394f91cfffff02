/**
 * Writes one response as updates and keeps it as messages.
 *
 * The close of a block is held back until the next block opens or the response ends, so that the last close can carry the stop reason and
 * the usage. Consecutive chunks of one kind (text, reasoning, refusal) extend one block.
 */
import {
  type Content,
  type ContentOf,
  custom,
  type Delta,
  delta,
  done,
  type Failure,
  type Json,
  type JsonObject,
  reasoning,
  type StopReason,
  start,
  text,
  type Update,
  type Usage,
} from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import { defaultModelLimits } from './limits.ts'
import type { ModelResult } from './model.ts'
import { createTranscript } from './transcript.ts'

export type Ending = {
  status: 'complete' | 'aborted' | 'failed'
  stopReason: StopReason
  rawStopReason?: string | undefined
  usage?: Usage | undefined
  /** The model that responded, for the price of its usage. */
  model?: string | undefined
  error?: Failure
}

type Flow = 'text' | 'refusal' | 'reasoning'

export type ResponseWriter = {
  /** Opens a block, and closes the block that `flow` extends. */
  open(content: Content, metadata?: JsonObject): number
  append(index: number, addition: Delta): void
  /** Adds fields to the block's metadata. Returns false when the block is already closed. */
  annotate(index: number, fields: JsonObject): boolean
  /** Emits a custom update, about a block or about the response. It changes no block. */
  notice(name: string, data: Json, index?: number): void
  /** The latest text block, open or closed. */
  latestText(): number | null
  close(index: number): void
  /** Extends the current block when it has this kind, else opens one. */
  flow(kind: Flow, chunk: string): void
  hasOutput(): boolean
  finish(ending: Ending): ModelResult
}

type Block = { isClosing: boolean; isClosed: boolean; isCall: boolean; metadata: JsonObject }

export function createResponseWriter(emit: (update: Update) => void, maxBlocks: number = defaultModelLimits.blocks): ResponseWriter {
  const transcript = createTranscript()
  const blocks: Block[] = []
  let latestText: number | null = null
  let flowing: { kind: Flow; index: number } | null = null

  return {
    ...{ open, append, annotate, close, flow, finish },
    notice: (name, data, index) => record(custom(name, data, index)),
    latestText: () => latestText,
    hasOutput: () => blocks.length > 0,
  }

  function record(update: Update): void {
    transcript.add(update)
    emit(update)
  }

  function open(content: Content, metadata: JsonObject = {}): number {
    if (blocks.length >= maxBlocks) throw new AgentError(`The model sent more than ${maxBlocks} blocks in one response (limits.blocks)`)
    if (flowing) close(flowing.index)
    flowing = null
    blocks.forEach((block, index) => {
      if (block.isClosing && !block.isClosed) record(done(index))
      block.isClosed = block.isClosing
    })
    const index = blocks.push({ isClosing: false, isClosed: false, isCall: content.type === 'tool_request', metadata }) - 1
    if (content.type === 'text') latestText = index
    record(start(index, content, Object.keys(metadata).length > 0 ? metadata : undefined))
    return index
  }

  function append(index: number, addition: Delta): void {
    if (blocks[index]?.isClosing === false) record(delta(index, addition))
  }

  function annotate(index: number, fields: JsonObject): boolean {
    const block = blocks[index]
    if (!block || block.isClosed) return false
    block.metadata = { ...block.metadata, ...fields }
    record(delta(index, { type: 'metadata', metadata: block.metadata }))
    return true
  }

  function close(index: number): void {
    const block = blocks[index]
    if (block) block.isClosing = true
  }

  function flow(kind: Flow, chunk: string): void {
    if (chunk === '') return
    if (flowing?.kind !== kind) {
      const index = kind === 'reasoning' ? open(reasoning()) : open(markdownText(), kind === 'refusal' ? { refusal: true } : {})
      flowing = { kind, index }
    }
    append(flowing.index, kind === 'reasoning' ? { type: 'reasoning_content', index: 0, text: chunk } : { type: 'text', text: chunk })
  }

  function finish(ending: Ending): ModelResult {
    // A response without content becomes an empty text, so that an update carries its stop reason and usage.
    if (blocks.length === 0 && ending.status !== 'failed') open(markdownText())
    const stopReason = honestReason(ending)
    const { usage, model, status, error } = ending
    blocks.forEach((block, index) => {
      if (block.isClosed) return
      block.isClosed = true
      const how = block.isClosing || status === 'complete' ? {} : { status, ...(error && { error }) }
      const last = index === blocks.length - 1 ? { stopReason, ...(usage && { usage, ...(model && { response: { model } }) }) } : {}
      record(done(index, { ...how, ...last }))
    })
    return { ...resultOf(transcript.messages(), stopReason, usage), ...(ending.rawStopReason && { rawStopReason: ending.rawStopReason }) }
  }

  /** Some providers send `stop` with calls, or `tool_calls` without a call, so the calls decide. */
  function honestReason({ stopReason }: Ending): StopReason {
    if (stopReason !== 'stop' && stopReason !== 'tool_use') return stopReason
    return blocks.some(({ isCall }) => isCall) ? 'tool_use' : 'stop'
  }
}

export function resultOf(messages: ModelResult['messages'], stopReason: StopReason, usage: Usage | undefined): ModelResult {
  return {
    messages,
    text: messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join(''),
    toolCalls: messages.flatMap(({ content, status }) => (content.type === 'tool_request' && status === 'complete' ? [content] : [])),
    ...(usage && { usage }),
    stopReason,
  }
}

/** An empty text of format markdown, because models write markdown whether instructed to or not. */
export function markdownText(): ContentOf<'text'> {
  return text('', 'markdown')
}
