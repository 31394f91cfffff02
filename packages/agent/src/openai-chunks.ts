/**
 * Understands the chunks of a streamed chat completion, of OpenAI and of the many who speak its dialect: every field may be missing or null,
 * and what does not look as it should is passed over.
 */
import { type Json, type StopReason, toStorableJson } from '@rivulet/protocol'
import { z } from 'zod'
import { createAsideBudget } from './aside-budget.ts'
import { createCitations } from './citations.ts'
import type { ModelLimits } from './limits.ts'
import { fieldsOf, inBandError, parseJson } from './provider-call.ts'
import type { ResponseReader } from './provider-stream.ts'
import type { ResponseWriter } from './response-writer.ts'
import type { ServerEvent } from './server-events.ts'
import { createToolCalls } from './tool-calls.ts'
import { mergeUsage } from './usage.ts'

const text = z.string().nullish().catch(undefined)
const unknowns = z.array(z.unknown()).nullish().catch(undefined)
const callSchema = z.object({
  index: z.int().min(0).nullish().catch(undefined),
  id: text,
  function: z.object({ name: text, arguments: text }).nullish().catch(undefined),
})
const deltaSchema = z.object({
  content: text,
  refusal: text,
  reasoning_content: text,
  reasoning: text,
  reasoning_text: text,
  reasoning_details: unknowns,
  tool_calls: unknowns,
  annotations: unknowns,
  images: unknowns,
  audio: z.object({ data: text, transcript: text }).nullish().catch(undefined),
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
  const detailsOf = new Map<string, Json[]>()

  return {
    read,
    flush,
    stopReason: () => stop,
    usage: () => usage,
  }

  function read({ event, data }: ServerEvent): boolean {
    if (data.trim() === '[DONE]') return readEnd()
    const value = parseJson(data)
    if (event === 'error') fail(value ?? data)
    const { data: chunk } = chunkSchema.safeParse(value)
    if (!chunk) return false
    if (chunk.error) fail(chunk.error)
    readUsage(chunk.usage)
    // Of several choices the first is the answer.
    const choice = chunk.choices?.find(({ index }) => !index)
    if (!choice) return false
    readUsage(choice.usage)
    if (choice.delta) readDelta(choice.delta)
    if (choice.finish_reason === 'error') fail(chunk.error ?? 'the provider stopped with an error')
    if (choice.finish_reason) stop = { unified: unify(choice.finish_reason), raw: choice.finish_reason }
    return false
  }

  function flush(): void {
    calls.flush()
    citations.flush()
  }

  /** A stream that says it is done, and said something, has stopped, even if it never said why. */
  function readEnd(): boolean {
    flush()
    if (!stop && writer.hasSpoken()) stop = { unified: 'stop', raw: '' }
    return true
  }

  function readDelta(delta: z.output<typeof deltaSchema>): void {
    // Where there are two spellings of the reasoning, they are two copies.
    flow('reasoning', delta.reasoning_content || delta.reasoning || delta.reasoning_text)
    flow('text', delta.content)
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
    calls.sayNamed()
    writer.flow(kind, chunk)
  }

  function readImage(image: unknown): void {
    const url = fieldsOf(fieldsOf(image).image_url).url
    if (typeof url !== 'string') return
    calls.sayNamed()
    const [, mimeType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
    const content = mimeType && data ? { mimeType, data } : { mimeType: 'image/*', url }
    writer.close(writer.open({ type: 'media', ...content }))
  }

  function readAudio({ data, transcript }: { data?: string | null | undefined; transcript?: string | null | undefined }): void {
    if (data) {
      calls.sayNamed()
      audio ??= writer.open({ type: 'media', mimeType: 'audio/pcm', data: '' })
      writer.append(audio, { type: 'media', bytes: data })
    }
    flow('text', transcript)
  }

  /** Reasoning that only the provider can read comes back with the call that it led to. */
  function readDetail(detail: unknown): void {
    const { type, id } = fieldsOf(detail)
    if (type !== 'reasoning.encrypted' || typeof id !== 'string') return
    keep(detail)
    const details = [...(detailsOf.get(id) ?? []), toStorableJson(detail, 16)]
    detailsOf.set(id, details)
    calls.annotate(id, { openai: { reasoningDetails: details } })
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
