/** Reads the events of a streamed Anthropic message. Anthropic itself numbers, opens, extends and closes the blocks. */
import { data, type Json, reasoning, type StopReason, toolRequest, toStorableJson } from '@rivulet/protocol'
import { z } from 'zod'
import { AgentError } from '../../agent-error.ts'
import type { ModelLimits } from '../../model/limits.ts'
import { markdownText, type ResponseWriter } from '../../model/response-writer.ts'
import { mergeUsage } from '../../model/usage.ts'
import { createAsideBudget } from '../aside-budget.ts'
import { createCitations } from '../citations.ts'
import { fieldsOf, inBandError, parseJson } from '../provider-call.ts'
import type { ResponseReader } from '../provider-stream.ts'
import type { ServerEvent } from '../server-events.ts'
import { newCallId } from '../tool-calls.ts'

const blockIndex = z.int().min(0)
const fields = z.record(z.string(), z.unknown())

const eventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('message_start'), message: fields.optional().catch(undefined) }),
  z.object({ type: z.literal('content_block_start'), index: blockIndex, content_block: fields }),
  z.object({ type: z.literal('content_block_delta'), index: blockIndex, delta: fields }),
  z.object({ type: z.literal('content_block_stop'), index: blockIndex }),
  z.object({ type: z.literal('message_delta'), delta: fields.optional().catch(undefined), usage: z.unknown().optional() }),
  z.object({ type: z.literal('message_stop') }),
  z.object({ type: z.literal('error'), error: z.unknown().optional() }),
])

/** An open block: its index in the writer, and what is kept until it stops. */
type Block = {
  at: number
  type: 'text' | 'reasoning' | 'tool_request' | 'data'
  signature: string
  /** A block of an unknown type, unchanged, with its deltas. */
  given: Json
  deltas: Json[]
}

export function createAnthropicReader(writer: ResponseWriter, limits: ModelLimits): ResponseReader {
  const blocks = new Map<number, Block>()
  const keep = createAsideBudget(limits.asideChars)
  const citations = createCitations(writer, keep)
  let stop: { unified: StopReason; raw: string } | null = null
  let usage: ReturnType<ResponseReader['usage']>
  let calls = 0

  return { read, flush: citations.flush, stopReason: () => stop, usage: () => usage }

  function read({ event, data }: ServerEvent): boolean {
    const value = parseJson(data)
    if (event === 'error' || fieldsOf(value).type === 'error') fail(fieldsOf(value).error ?? value ?? data)
    const { data: parsed } = eventSchema.safeParse(value)
    // Pings and event types added later.
    if (!parsed) return false
    switch (parsed.type) {
      case 'message_start':
        readUsage(parsed.message?.usage)
        return false
      case 'content_block_start':
        startBlock(parsed.index, parsed.content_block)
        return false
      case 'content_block_delta':
        extendBlock(parsed.index, parsed.delta)
        return false
      case 'content_block_stop':
        stopBlock(parsed.index)
        return false
      case 'message_delta':
        readUsage(parsed.usage)
        readStop(parsed.delta?.stop_reason)
        return false
      case 'message_stop':
        if (!stop && writer.hasOutput()) readStop('end_turn')
        return true
      case 'error':
        return fail(parsed.error)
      default:
        return parsed satisfies never
    }
  }

  function startBlock(index: number, block: Record<string, unknown>): void {
    if (blocks.has(index)) return
    switch (block.type) {
      case 'text':
        blocks.set(index, opened('text', writer.open(markdownText())))
        for (const citation of arrayOf(block.citations)) citations.add(citation)
        // Text in the start event is emitted as a delta, so that the deltas are the whole text.
        extendBlock(index, { type: 'text_delta', text: block.text })
        break
      case 'thinking':
        blocks.set(index, opened('reasoning', writer.open(reasoning())))
        extendBlock(index, { type: 'thinking_delta', thinking: block.thinking })
        extendBlock(index, { type: 'signature_delta', signature: block.signature })
        break
      case 'redacted_thinking':
        blocks.set(index, opened('reasoning', writer.open(reasoning(), { anthropic: { redacted: toStorableJson(block.data ?? '', 1) } })))
        break
      case 'tool_use':
        startCall(index, block)
        break
      default:
        startUnknown(index, toStorableJson(block, 32))
    }
  }

  function startUnknown(index: number, given: Json): void {
    blocks.set(index, { ...opened('data', writer.open(data(opaque(given, [])))), given })
  }

  function startCall(index: number, { id, name, input }: Record<string, unknown>): void {
    if (typeof name !== 'string' || name === '') return
    calls += 1
    if (calls > limits.calls) throw new AgentError(`The model made more than ${limits.calls} tool calls in one response (limits.calls)`)
    const callId = typeof id === 'string' && id !== '' ? id : newCallId()
    blocks.set(index, opened('tool_request', writer.open(toolRequest(callId, name))))
    if (Object.keys(fieldsOf(input)).length > 0) extendBlock(index, { type: 'input_json_delta', partial_json: JSON.stringify(input) })
  }

  function extendBlock(index: number, delta: Record<string, unknown>): void {
    const block = blocks.get(index)
    if (!block) return
    const { type } = delta
    if (type === 'text_delta' && block.type === 'text') append(block, { type: 'text', text: stringOf(delta.text) })
    else if (type === 'thinking_delta' && block.type === 'reasoning')
      append(block, { type: 'reasoning_content', index: 0, text: stringOf(delta.thinking) })
    else if (type === 'signature_delta' && block.type === 'reasoning') keepSignature(block, stringOf(delta.signature))
    else if (type === 'input_json_delta' && block.type === 'tool_request')
      append(block, { type: 'tool_request', text: stringOf(delta.partial_json) })
    else if (type === 'citations_delta') citations.add(delta.citation)
    else if (block.type === 'data') keepUnknown(block, delta)
  }

  function append(block: Block, delta: { text: string } & Parameters<ResponseWriter['append']>[1]): void {
    if (delta.text !== '') writer.append(block.at, delta)
  }

  function keepSignature(block: Block, signature: string): void {
    keep(signature)
    block.signature += signature
  }

  /** The deltas of a block of an unknown type are kept with it, unchanged. */
  function keepUnknown(block: Block, delta: Record<string, unknown>): void {
    keep(delta)
    block.deltas.push(toStorableJson(delta, 32))
  }

  function stopBlock(index: number): void {
    const block = blocks.get(index)
    if (!block) return
    if (block.signature !== '') writer.annotate(block.at, { anthropic: { signature: block.signature } })
    if (block.deltas.length > 0) writer.append(block.at, { type: 'data', value: opaque(block.given, block.deltas) })
    writer.close(block.at)
    blocks.delete(index)
  }

  function readStop(reason: unknown): void {
    if (typeof reason === 'string') stop = { unified: unify(reason), raw: reason }
  }

  function readUsage(value: unknown): void {
    const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = fieldsOf(value)
    usage = mergeUsage(usage, {
      inputTokens: input_tokens,
      outputTokens: output_tokens,
      cacheReadTokens: cache_read_input_tokens,
      cacheWriteTokens: cache_creation_input_tokens,
    })
  }

  function fail(error: unknown): never {
    stop = null
    throw inBandError(error)
  }
}

function opened(type: Block['type'], at: number): Block {
  return { type, at, signature: '', given: null, deltas: [] }
}

function opaque(block: Json, deltas: Json[]): Json {
  return { provider: 'anthropic', block, deltas }
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function arrayOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function unify(reason: string): StopReason {
  switch (reason) {
    case 'end_turn':
    case 'stop_sequence':
      return 'stop'
    case 'tool_use':
      return 'tool_use'
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'refusal':
      return 'content_filter'
    default:
      return 'other'
  }
}
