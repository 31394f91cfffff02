/** A model over the Chat Completions API, streamed: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp and compatible servers. */
import type { Model } from '../../model/model.ts'
import { withWireNames } from '../../model/tool-names.ts'
import { type ProviderOptions, providerCall, streamSettings, withoutTrailingSlash } from '../provider-options.ts'
import { streamResponse } from '../provider-stream.ts'
import { createOpenaiReader } from './openai-chunks.ts'
import { openaiBody } from './openai-messages.ts'

export type OpenaiOptions = ProviderOptions

export function openaiModel(options: OpenaiOptions): Model {
  const { baseUrl = 'https://api.openai.com/v1', apiKey, model } = options
  const url = `${withoutTrailingSlash(baseUrl)}/chat/completions`
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {}
  const settings = streamSettings(options)
  return {
    name: model,
    stream: (given, { turn, signal = turn?.signal, traceparent = turn?.span.traceparent } = {}) => {
      const { request, nameOf } = withWireNames(given)
      return streamResponse({
        ...settings,
        ...{ model, signal, nameOf },
        call: () => providerCall(options, url, { ...headers, ...(traceparent && { traceparent }) }, openaiBody(model, request)),
        createReader: writer => createOpenaiReader(writer, settings.limits),
      })
    },
  }
}
