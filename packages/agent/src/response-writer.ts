/**
 * Says one response as updates, and knows it as messages.
 *
 * The close of a block is held back until the next block opens or the response ends, so that the last close can carry the stop reason and
 * the usage. What flows (text, reasoning) is one block as long as nothing else comes between.
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
import { AgentError } from './agent-error.ts'
import { defaultModelLimits } from './limits.ts'
import type { ModelResult } from './model.ts'
import { createTranscript } from './transcript.ts'

export type Ending = {
  status: 'complete' | 'aborted' | 'failed'
  stopReason: StopReason
  rawStopReason?: string | undefined
  usage?: Usage | undefined
  error?: Failure
}

export type Flow = 'text' | 'refusal' | 'reasoning'

export type ResponseWriter = {
  /** Opens a block, and closes the one that flows. */
  open(content: Content, metadata?: JsonObject): number
  append(index: number, addition: Delta): void
  /** Adds fields to the block's metadata; answers false when it is too late for that. */
  annotate(index: number, fields: JsonObject): boolean
  /** Says something about a block that changes nothing. */
  notice(name: string, data: Json, index: number): void
  /** The block of the text that was said last, closed or not. */
  latestText(): number | null
  close(index: number): void
  /** Extends the block that flows, or opens one. */
  flow(kind: Flow, chunk: string): void
  hasSpoken(): boolean
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
    notice: (name, data, index) => say(custom(name, data, index)),
    latestText: () => latestText,
    hasSpoken: () => blocks.length > 0,
  }

  function say(update: Update): void {
    transcript.add(update)
    emit(update)
  }

  function open(content: Content, metadata: JsonObject = {}): number {
    if (blocks.length >= maxBlocks) throw new AgentError(`The model sent more than ${maxBlocks} blocks`)
    if (flowing) close(flowing.index)
    flowing = null
    blocks.forEach((block, index) => {
      if (block.isClosing && !block.isClosed) say(done(index))
      block.isClosed = block.isClosing
    })
    const index = blocks.push({ isClosing: false, isClosed: false, isCall: content.type === 'tool_request', metadata }) - 1
    if (content.type === 'text') latestText = index
    say(start(index, content, Object.keys(metadata).length > 0 ? metadata : undefined))
    return index
  }

  function append(index: number, addition: Delta): void {
    if (blocks[index]?.isClosing === false) say(delta(index, addition))
  }

  function annotate(index: number, fields: JsonObject): boolean {
    const block = blocks[index]
    if (!block || block.isClosed) return false
    block.metadata = { ...block.metadata, ...fields }
    say(delta(index, { type: 'metadata', metadata: block.metadata }))
    return true
  }

  function close(index: number): void {
    const block = blocks[index]
    if (block) block.isClosing = true
  }

  function flow(kind: Flow, chunk: string): void {
    if (chunk === '') return
    if (flowing?.kind !== kind) {
      const index = kind === 'reasoning' ? open(reasoning()) : open(spokenText(), kind === 'refusal' ? { refusal: true } : {})
      flowing = { kind, index }
    }
    append(flowing.index, kind === 'reasoning' ? { type: 'reasoning_content', index: 0, text: chunk } : { type: 'text', text: chunk })
  }

  function finish(ending: Ending): ModelResult {
    // A response without content is an empty text: its stop reason and its usage are to be heard as well.
    if (blocks.length === 0 && ending.status !== 'failed') open(spokenText())
    const stopReason = honestReason(ending)
    const { usage, status, error } = ending
    blocks.forEach((block, index) => {
      if (block.isClosed) return
      block.isClosed = true
      const how = block.isClosing || status === 'complete' ? {} : { status, ...(error && { error }) }
      const last = index === blocks.length - 1 ? { stopReason, ...(usage && { usage }) } : {}
      say(done(index, { ...how, ...last }))
    })
    return { ...resultOf(transcript.messages(), stopReason, usage), ...(ending.rawStopReason && { rawStopReason: ending.rawStopReason }) }
  }

  /** Some providers say `stop` beside calls, or `tool_calls` without one: the calls decide. */
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

/** The beginning of what a model says: they all write markdown, told to or not. */
export function spokenText(): ContentOf<'text'> {
  return text('', 'markdown')
}
