/** A model over Anthropic's Messages API, streamed. */
import type { Model } from '../../model/model.ts'
import { withWireNames } from '../../model/tool-names.ts'
import { type ProviderOptions, providerCall, streamSettings, withoutTrailingSlash } from '../provider-options.ts'
import { streamResponse } from '../provider-stream.ts'
import { createAnthropicReader } from './anthropic-events.ts'
import { anthropicBody } from './anthropic-messages.ts'

export type AnthropicOptions = ProviderOptions & {
  /** The maximum for requests that do not set one. Default 8,192. */
  maxOutputTokens?: number
}

export function anthropicModel(options: AnthropicOptions): Model {
  const { baseUrl = 'https://api.anthropic.com', apiKey, model, maxOutputTokens = 8_192 } = options
  const url = `${withoutTrailingSlash(baseUrl)}/v1/messages`
  const headers = { 'anthropic-version': '2023-06-01', ...(apiKey && { 'x-api-key': apiKey }) }
  const settings = streamSettings(options)
  return {
    name: model,
    stream: (given, { turn, signal = turn?.signal, traceparent = turn?.span.traceparent } = {}) => {
      const { request, nameOf } = withWireNames(given)
      return streamResponse({
        ...settings,
        ...{ model, signal, nameOf },
        call: () =>
          providerCall(
            options,
            url,
            { ...headers, ...(traceparent && { traceparent }) },
            anthropicBody(model, { maxOutputTokens, ...request }),
          ),
        createReader: writer => createAnthropicReader(writer, settings.limits),
      })
    },
  }
}
