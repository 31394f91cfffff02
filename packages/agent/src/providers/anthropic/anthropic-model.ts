/** A model over Anthropic's Messages API, streamed. */
import type { Model } from '../../model/model.ts'
import { providerModel } from '../provider-model.ts'
import type { ProviderOptions } from '../provider-options.ts'
import { createAnthropicReader } from './anthropic-events.ts'
import { anthropicBody } from './anthropic-messages.ts'

export type AnthropicOptions = ProviderOptions & {
  /** The maximum for requests that do not set one. Default 8,192. */
  maxOutputTokens?: number
}

export function anthropicModel(options: AnthropicOptions): Model {
  const { baseUrl = 'https://api.anthropic.com', apiKey, model, maxOutputTokens = 8_192 } = options
  return providerModel(options, {
    ...{ baseUrl, path: '/v1/messages' },
    headers: { 'anthropic-version': '2023-06-01', ...(apiKey && { 'x-api-key': apiKey }) },
    body: request => anthropicBody(model, { maxOutputTokens, ...request }),
    createReader: createAnthropicReader,
  })
}
