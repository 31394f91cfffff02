/**
 * Reads the chunks of a streamed chat completion, of OpenAI and of the servers that imitate it: every field may be missing or null, and a
 * malformed value is ignored.
 */
import { data, type Json, type StopReason, toStorableJson } from '@rivulet/protocol'
import { z } from 'zod'
import type { ModelLimits } from '../../model/limits.ts'
import type { ResponseWriter } from '../../model/response-writer.ts'
import { mergeUsage } from '../../model/usage.ts'
import { createAsideBudget } from '../aside-budget.ts'
import { createCitations } from '../citations.ts'
import { fieldsOf, inBandError, parseJson } from '../provider-call.ts'
import type { ResponseReader } from '../provider-stream.ts'
import type { ServerEvent } from '../server-events.ts'
import { createToolCalls } from '../tool-calls.ts'

const text = z.string().nullish().catch(undefined)
const unknowns = z.array(z.unknown()).nullish().catch(undefined)
const callSchema = z.object({
  index: z.int().min(0).nullish().catch(undefined),
  id: text,
  function: z.object({ name: text, arguments: text }).nullish().catch(undefined),
})
const deltaSchema = z.object({
  content: z
    .union([z.string(), z.array(z.unknown())])
    .nullish()
    .catch(undefined),
  refusal: text,
  reasoning_content: text,
  reasoning: text,
  reasoning_text: text,
  reasoning_details: unknowns,
  tool_calls: unknowns,
  annotations: unknowns,
  images: unknowns,
  audio: z.object({ id: text, data: text, transcript: text }).nullish().catch(undefined),
})
const choiceSchema = z.object({
  index: z.number().nullish().catch(undefined),
  delta: deltaSchema.nullish().catch(undefined),
  finish_reason: text,
  usage: z.unknown().optional(),
})
const chunkSchema = z.object({
  choices: z.array(choiceSchema).nullish().catch(undefined),
  usage: z.unknown().optional(),
  error: z.unknown().optional(),
})

export function createOpenaiReader(writer: ResponseWriter, limits: ModelLimits): ResponseReader {
  const calls = createToolCalls(writer, limits)
  const keep = createAsideBudget(limits.asideChars)
  const citations = createCitations(writer, keep)
  let stop: { unified: StopReason; raw: string } | null = null
  let usage: ReturnType<ResponseReader['usage']>
  let audio: number | null = null
  let audioId: string | null = null
  let hasWarned = false
  const detailsOf = new Map<string, Json[]>()

  return {
    read,
    flush,
    stopReason: () => stop,
    usage: () => usage,
  }

  function read({ event, data: body }: ServerEvent): boolean {
    if (body.trim() === '[DONE]') return readEnd()
    const value = parseJson(body)
    if (event === 'error') fail(value ?? body)
    const { data: chunk } = chunkSchema.safeParse(value)
    if (!chunk) return false
    if (chunk.error) fail(chunk.error)
    readUsage(chunk.usage)
    if (!hasWarned && chunk.choices?.some(({ index }) => index)) {
      hasWarned = true
      writer.notice('model_warning', { reason: 'The response has several choices; only the first is used' })
    }
    const choice = chunk.choices?.find(({ index }) => !index)
    if (!choice) return false
    readUsage(choice.usage)
    if (choice.delta) readDelta(choice.delta)
    if (choice.finish_reason === 'error') fail(chunk.error ?? 'the provider stopped with an error')
    if (choice.finish_reason) stop = { unified: unify(choice.finish_reason), raw: choice.finish_reason }
    return false
  }

  function flush(): void {
    // One annotation for each call: one for each detail would send the growing list again and again, quadratic in the number of details.
    for (const [id, reasoningDetails] of detailsOf) calls.annotate(id, { openai: { reasoningDetails } })
    detailsOf.clear()
    calls.flush()
    citations.flush()
  }

  /** A stream that sent content and then [DONE] is complete, even without a finish reason. */
  function readEnd(): boolean {
    flush()
    if (!stop && writer.hasOutput()) stop = { unified: 'stop', raw: '' }
    return true
  }

  function readDelta(delta: z.output<typeof deltaSchema>): void {
    // A server that fills two of these fields sends the same text in both.
    flow('reasoning', delta.reasoning_content || delta.reasoning || delta.reasoning_text)
    for (const part of [delta.content ?? []].flat()) readPart(part)
    flow('refusal', delta.refusal)
    for (const image of delta.images ?? []) readImage(image)
    if (delta.audio) readAudio(delta.audio)
    for (const value of delta.tool_calls ?? []) {
      const { data: call } = callSchema.safeParse(value)
      const { name, arguments: args } = call?.function ?? {}
      if (call)
        calls.add({ index: call.index ?? undefined, id: call.id ?? undefined, name: name ?? undefined, arguments: args ?? undefined })
    }
    for (const detail of delta.reasoning_details ?? []) readDetail(detail)
    for (const annotation of delta.annotations ?? []) citations.add(fieldsOf(annotation).url_citation ?? annotation)
  }

  function flow(kind: 'text' | 'refusal' | 'reasoning', chunk: string | null | undefined): void {
    if (!chunk) return
    calls.openNamed()
    writer.flow(kind, chunk)
  }

  /** Most servers send a string; some send a list of parts, whose unknown kinds are kept unchanged. */
  function readPart(part: unknown): void {
    const { type, text: words } = fieldsOf(part)
    if (typeof part === 'string') {
      flow('text', part)
    } else if (type === 'text' && typeof words === 'string') {
      flow('text', words)
    } else {
      keep(part)
      calls.openNamed()
      writer.close(writer.open(data({ provider: 'openai', block: toStorableJson(part, 16), deltas: [] })))
    }
  }

  function readImage(image: unknown): void {
    const url = fieldsOf(fieldsOf(image).image_url).url
    if (typeof url !== 'string') return
    calls.openNamed()
    const [, mimeType, bytes] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
    const content = mimeType && bytes ? { mimeType, data: bytes } : { mimeType: 'image/*', url }
    writer.close(writer.open({ type: 'media', ...content }))
  }

  /** A later request may refer to the audio by its id. */
  function readAudio({ id, data: bytes, transcript }: NonNullable<z.output<typeof deltaSchema>['audio']>): void {
    if (id) audioId = id
    if (bytes) {
      calls.openNamed()
      audio ??= writer.open({ type: 'media', mimeType: 'audio/pcm', data: '' }, audioId === null ? {} : { openai: { audioId } })
      writer.append(audio, { type: 'media', bytes })
    }
    flow('text', transcript)
  }

  /** Encrypted reasoning is kept with the call of its id, so that the next request can return it to the provider. */
  function readDetail(detail: unknown): void {
    const { type, id } = fieldsOf(detail)
    if (type !== 'reasoning.encrypted' || typeof id !== 'string') return
    keep(detail)
    const details = detailsOf.get(id) ?? []
    details.push(toStorableJson(detail, 16))
    detailsOf.set(id, details)
  }

  function readUsage(value: unknown): void {
    const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } = fieldsOf(value)
    usage = mergeUsage(usage, {
      inputTokens: prompt_tokens,
      outputTokens: completion_tokens,
      totalTokens: total_tokens,
      cacheReadTokens: fieldsOf(prompt_tokens_details).cached_tokens,
      reasoningTokens: fieldsOf(completion_tokens_details).reasoning_tokens,
    })
  }

  function fail(error: unknown): never {
    stop = null
    throw inBandError(error)
  }
}

function unify(reason: string): StopReason {
  switch (reason) {
    case 'stop':
      return 'stop'
    case 'tool_calls':
    case 'function_call':
      return 'tool_use'
    case 'length':
    case 'content_filter':
      return reason
    default:
      return 'other'
  }
}
