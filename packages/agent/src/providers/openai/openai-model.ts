/** A model over the Chat Completions API, streamed: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp and compatible servers. */
import type { Model } from '../../model/model.ts'
import { providerModel } from '../provider-model.ts'
import type { ProviderOptions } from '../provider-options.ts'
import { createOpenaiReader } from './openai-chunks.ts'
import { openaiBody } from './openai-messages.ts'

export type OpenaiOptions = ProviderOptions

export function openaiModel(options: OpenaiOptions): Model {
  const { baseUrl = 'https://api.openai.com/v1', apiKey, model } = options
  return providerModel(options, {
    ...{ baseUrl, path: '/chat/completions' },
    headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
    body: request => openaiBody(model, request),
    createReader: createOpenaiReader,
  })
}
