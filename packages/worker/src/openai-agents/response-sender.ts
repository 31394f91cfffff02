/**
 * Sends one response of a model through the turn while it streams. At the end it compares the streamed output with the complete response: it
 * sends missing parts whole, and replaces parts that differ. Then it closes all messages, the last one with the usage.
 */
import {
  type Content,
  data,
  type Json,
  type JsonObject,
  reasoning,
  type StopReason,
  text,
  toolRequest,
  toStorableJson,
  type Usage,
} from '@rivulet/protocol'
import { failureOf } from '../failure.ts'
import type { MessageHandle } from '../writer/message-handle.ts'
import { type DoneResponse, fieldsOf, type ModelEvent, type OutputItem, type Piece, piecesOf, type TokenCounts } from './model-events.ts'

type StreamedCall = { callId: string; name: string; raw: string; handle: OpenMessage | null }

type OpenMessage = Pick<MessageHandle, 'append' | 'finish' | 'replace'>

/** What the response is sent to: a turn, or a stream of updates. */
export type Speaker = { message(content: Content, options: { metadata?: JsonObject }): OpenMessage }

export type ResponseSender = {
  send(event: ModelEvent): Promise<void>
  /** The response broke off: what is open has failed. One that reached its limit is complete, with the stop reason. */
  fail(error: unknown): Promise<void>
  /** Whether the provider reported that the response is incomplete. */
  isCutOff(): boolean
}

export function createResponseSender(
  { turn, calls: told }: { turn: Speaker; calls: Set<string> },
  model: string | undefined,
): ResponseSender {
  const open = new Set<OpenMessage>()
  const calls = new Map<string, StreamedCall>()
  let saying: { itemId: string | undefined; handle: OpenMessage } | null = null
  let said = ''
  let thinking: OpenMessage | null = null
  let stop: StopReason = 'stop'
  let isCutOff = false

  return { send, fail, isCutOff: () => isCutOff }

  async function send(event: ModelEvent): Promise<void> {
    if (event.type === 'output_text_delta') await say(event.delta, event.itemId)
    else if (event.type === 'model') for (const piece of piecesOf(event.event)) await take(piece)
    else if (event.type === 'response_done') await finish(event.response)
  }

  async function fail(error: unknown): Promise<void> {
    const handles = Array.from(open)
    const how = (handle: OpenMessage) =>
      isCutOff ? (handle === handles.at(-1) ? { stopReason: stop } : {}) : { status: 'failed' as const, error: failureOf(error) }
    for (const handle of handles) await handle.finish(how(handle)).catch(() => {})
  }

  async function say(addition: string, itemId: string | undefined): Promise<void> {
    if (!saying || saying.itemId !== itemId) saying = { itemId, handle: begin(text()) }
    said += addition
    await saying.handle.append(addition)
  }

  async function take(piece: Piece): Promise<void> {
    switch (piece.type) {
      case 'reasoning': {
        thinking ??= begin(reasoning())
        const { index, text: addition } = piece
        await thinking.append({ type: piece.kind === 'summary' ? 'reasoning_summary' : 'reasoning_content', index, text: addition })
        break
      }
      case 'call':
        await extendCall(piece)
        break
      case 'stop':
        stop = stopReasonOf(piece.reason)
        isCutOff ||= piece.isCutOff === true
        break
      default:
        piece satisfies never
    }
  }

  /** A call is said when its arguments begin: until then its name may come in pieces. */
  async function extendCall({ key, callId, name, text: addition }: Extract<Piece, { type: 'call' }>): Promise<void> {
    const call = calls.get(key) ?? { callId: '', name: '', raw: '', handle: null }
    calls.set(key, call)
    call.callId ||= callId ?? ''
    call.name += name ?? ''
    call.raw += addition
    if (addition === '' || call.callId === '') return
    if (call.handle) {
      await call.handle.append(addition)
    } else {
      call.handle = begin(toolRequest(call.callId, call.name))
      told.add(call.callId)
      await call.handle.append(call.raw)
    }
  }

  async function finish({ output, usage }: DoneResponse): Promise<void> {
    for (const item of output) await complete(item)
    // What was replaced is closed and can carry no usage: where there is nothing else, a thought of nothing does.
    if (usage && open.size === 0) begin(reasoning())
    const handles = Array.from(open)
    const stopReason = output.some(({ type }) => type === 'function_call') ? 'tool_use' : stop
    for (const handle of handles) {
      await handle.finish(
        handle === handles.at(-1) ? { stopReason, ...usageOf(usage), ...(usage && model && { response: { model } }) } : {},
      )
    }
    open.clear()
  }

  async function complete(item: OutputItem): Promise<void> {
    if (isKind(item, 'message')) completeText(item)
    else if (isKind(item, 'reasoning')) completeReasoning(item)
    else if (isKind(item, 'function_call')) await completeCall(item)
    // Calls of tools that the provider runs, and what may come later: kept as they are.
    else begin(data(toStorableJson(item, 32)))
  }

  function completeText({ content }: Extract<OutputItem, { content: { type: string }[] }>): void {
    for (const part of content) {
      if ('text' in part && part.type === 'output_text' && !said.includes(part.text)) begin(text(part.text))
      else if ('refusal' in part) begin(text(part.refusal), { refusal: true })
    }
  }

  function completeReasoning({ content, rawContent = [] }: Extract<OutputItem, { rawContent?: unknown }>): void {
    const whole = reasoning(
      content.map(part => part.text),
      rawContent.map(part => part.text),
    )
    if (!thinking && [...whole.summary, ...whole.content].some(Boolean)) begin(whole)
  }

  async function completeCall(item: Extract<OutputItem, { callId: string }>): Promise<void> {
    const { callId, name, arguments: raw } = item
    const streamed = Array.from(calls.values()).find(call => call.callId === callId)
    if (streamed?.handle) {
      const isSame = streamed.raw === raw && streamed.name === name
      const value = isSame ? undefined : parseArguments(raw)
      if (value === undefined) return
      open.delete(streamed.handle)
      await streamed.handle.replace(toolRequest(callId, name, value))
    } else if (!told.has(callId)) {
      told.add(callId)
      begin({ ...toolRequest(callId, name), raw })
    }
  }

  function begin(content: Content, metadata?: JsonObject): OpenMessage {
    const handle = turn.message(content, metadata ? { metadata } : {})
    open.add(handle)
    return handle
  }
}

function isKind<T extends 'message' | 'reasoning' | 'function_call'>(item: OutputItem, type: T): item is Extract<OutputItem, { type: T }> {
  return item.type === type
}

function parseArguments(raw: string): Json | undefined {
  try {
    return JSON.parse(raw) as Json
  } catch {
    return undefined
  }
}

function stopReasonOf(finishReason: string): StopReason {
  if (finishReason === 'max_output_tokens') return 'length'
  if (finishReason === 'length' || finishReason === 'content_filter') return finishReason
  return finishReason === 'tool_calls' ? 'tool_use' : 'stop'
}

function usageOf(counts: TokenCounts | undefined): { usage?: Usage } {
  if (!counts) return {}
  const { inputTokens, outputTokens, totalTokens, inputTokensDetails, outputTokensDetails } = counts
  const cacheReadTokens = fieldsOf(inputTokensDetails).cached_tokens
  const reasoningTokens = fieldsOf(outputTokensDetails).reasoning_tokens
  const known = Object.entries({ inputTokens, outputTokens, totalTokens, cacheReadTokens, reasoningTokens })
  return { usage: Object.fromEntries(known.filter((entry): entry is [string, number] => typeof entry[1] === 'number')) }
}
