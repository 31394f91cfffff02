/**
 * `turn.autoSend(fromAiSdk(result.fullStream))`: a run of the AI SDK as updates.
 *
 * Each text, reasoning, tool call, tool result and file is a message, in order of appearance over all steps. The last message of a step carries
 * its stop reason and usage; where that message was replaced, an empty reasoning message does. A tool's input is streamed; where the SDK's
 * final input differs (it was repaired), that replaces the streamed one. An abort closes open messages as aborted and ends without an error.
 * An error is thrown, and the caller closes the open messages.
 */
import {
  custom,
  type Json,
  type JsonObject,
  media,
  reasoning,
  type StopReason,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import { messageOf } from '../agent-error.ts'
import { type Block, createBlocks, type End } from '../foreign/blocks.ts'
import { jsonOf, type PartReader, updatesOf } from '../foreign/foreign-run.ts'
import { mergeUsage } from '../model/usage.ts'
import type { StepUsage, StreamPart } from './stream-parts.ts'

/** A part of `fullStream` (`stream` in version 7). Unknown types are ignored. */
export type AiSdkPart = { type: string }

export function fromAiSdk(parts: AsyncIterable<AiSdkPart>): AsyncGenerator<Update, void, void> {
  return updatesOf(parts, createPartReader)
}

type ToolInput = { block: Block; raw: string; isJson: boolean }

function createPartReader(emit: (update: Update) => void): PartReader<AiSdkPart> {
  const blocks = createBlocks(emit)
  const flows = new Map<string, Block>()
  const inputs = new Map<string, ToolInput>()
  const results = new Map<string, Block>()
  const known = new Set<string>()
  /** Of the latest text, or of the first one, before it starts. */
  let citations: Json[] = []
  let latestText: Block | null = null
  return { read, end: () => {}, settle: blocks.settle }

  function read(part: AiSdkPart): boolean {
    readPart(part as StreamPart)
    return part.type === 'abort'
  }

  function readPart(part: StreamPart): void {
    switch (part.type) {
      case 'text-start':
        if (latestText) citations = []
        latestText = blocks.open(text(), citations.length > 0 ? { citations } : {})
        flows.set(part.id, latestText)
        break
      case 'text-delta':
        extend(part.id, { type: 'text', text: part.text })
        break
      case 'text-end':
        for (const citation of part.citations ?? []) cite(citation)
        end(part.id)
        break
      case 'reasoning-start':
        flows.set(part.id, blocks.open(reasoning()))
        break
      case 'reasoning-delta':
        extend(part.id, { type: 'reasoning_content', index: 0, text: part.text })
        break
      case 'reasoning-end':
        end(part.id)
        break
      case 'tool-input-start':
        inputs.set(part.id, { block: blocks.open(toolRequest(part.id, part.toolName)), raw: '', isJson: part.inputEncoding !== 'text' })
        break
      case 'tool-input-delta':
        extendInput(part.id, part.delta)
        break
      case 'tool-call':
        call(part.toolCallId, part.toolName, part.input)
        break
      case 'tool-result':
        result(part.toolCallId, part.toolName, part.output, part.preliminary === true)
        break
      case 'tool-error':
        failCall(part.toolCallId, part.toolName, messageOf(part.error))
        break
      case 'tool-output-denied':
        failCall(part.toolCallId, part.toolName, part.reason === undefined ? 'Denied' : `Denied: ${part.reason}`)
        break
      case 'source':
        cite(sourceOf(part))
        break
      case 'file':
      case 'reasoning-file': {
        const { mediaType, base64 } = part.file
        blocks.close(blocks.open(media(mediaType, base64), part.type === 'file' ? {} : { reasoning: true }))
        break
      }
      case 'custom':
        emit(custom(part.kind, jsonOf(part.providerMetadata)))
        break
      case 'finish-step':
        blocks.closeAll({}, { stopReason: stopReasonOf(part.finishReason), ...usageOf(part.usage, part.response?.modelId) })
        break
      case 'abort':
        blocks.closeAll({ status: 'aborted' }, { stopReason: 'aborted' })
        break
      case 'error':
        throw part.error instanceof Error ? part.error : new Error(messageOf(part.error))
      default:
    }
  }

  function extend(id: string, addition: Parameters<typeof blocks.append>[1]): void {
    const block = flows.get(id)
    if (block) blocks.append(block, addition)
  }

  function end(id: string): void {
    const block = flows.get(id)
    // The next step may use the id again.
    flows.delete(id)
    if (block) blocks.close(block)
  }

  function extendInput(id: string, fragment: string): void {
    const input = inputs.get(id)
    if (!input?.isJson) return
    input.raw += fragment
    blocks.append(input.block, { type: 'tool_request', text: fragment })
  }

  function call(id: string, name: string, value: unknown): void {
    const input = inputs.get(id)
    const request = toolRequest(id, name, jsonOf(value ?? {}))
    inputs.delete(id)
    if (!input) blocks.close(blocks.open(request))
    else if (isSameJson(input.raw, request.arguments)) blocks.close(input.block)
    else blocks.replace(input.block, request)
  }

  function result(id: string, name: string, output: unknown, isPreliminary: boolean): void {
    const value = jsonOf(output)
    const known = results.get(id)
    if (known) blocks.append(known, { type: 'data', value })
    const block = known ?? blocks.open(toolResponse(id, name, value))
    if (isPreliminary) {
      results.set(id, block)
    } else {
      results.delete(id)
      blocks.close(block)
    }
  }

  function failCall(id: string, name: string, error: string): void {
    const block = results.get(id)
    const response = toolResponse(id, name, error, true)
    if (block) blocks.replace(block, response)
    else blocks.close(blocks.open(response))
    results.delete(id)
  }

  /** Adds a source to the metadata of the latest text, or emits a custom update when that text is closed. */
  function cite(source: unknown): void {
    const citation = jsonOf(source)
    const key = isObject(citation) && typeof citation.url === 'string' ? citation.url : JSON.stringify(citation)
    if (known.has(key)) return
    known.add(key)
    citations = [...citations, citation]
    if (latestText && !blocks.annotate(latestText, { citations })) emit(custom('citations', [citation], latestText.index))
  }
}

function sourceOf({ type: _, sourceType, id, ...fields }: Extract<StreamPart, { type: 'source' }>): object {
  const { url, title, mediaType, filename } = fields
  return { type: sourceType, id, url, title, mediaType, filename }
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isSameJson(raw: string, value: Json): boolean {
  try {
    return JSON.stringify(raw.trim() === '' ? {} : JSON.parse(raw)) === JSON.stringify(value)
  } catch {
    return false
  }
}

function stopReasonOf(finishReason: string): StopReason {
  switch (finishReason) {
    case 'stop':
    case 'length':
    case 'error':
      return finishReason
    case 'tool-calls':
      return 'tool_use'
    case 'content-filter':
      return 'content_filter'
    default:
      return 'other'
  }
}

function usageOf({ inputTokens, outputTokens, totalTokens, ...more }: StepUsage, model?: string): Pick<End, 'usage' | 'response'> {
  const usage = mergeUsage(undefined, {
    ...{ inputTokens, outputTokens, totalTokens },
    cacheReadTokens: more.inputTokenDetails?.cacheReadTokens ?? more.cachedInputTokens,
    cacheWriteTokens: more.inputTokenDetails?.cacheWriteTokens,
    reasoningTokens: more.outputTokenDetails?.reasoningTokens ?? more.reasoningTokens,
  })
  return usage ? { usage, ...(model && { response: { model } }) } : {}
}
