/** The options of every model over HTTP. */
import { type JsonObject, toStorableJson } from '@rivulet/protocol'
import { defaultModelLimits, type ModelLimits } from '../model/limits.ts'
import type { ProviderCall } from './provider-call.ts'
import { defaultRetryPolicy, type RetryPolicy } from './retry-delay.ts'

export type ProviderOptions = {
  /** The URL of the API, without the path of the call. */
  baseUrl?: string | undefined
  apiKey?: string | undefined
  model: string
  headers?: Record<string, string>
  /** Fields added to every request body. They override the model's own fields. */
  body?: JsonObject
  retry?: Partial<RetryPolicy>
  /** How long the provider may send nothing at all. Default 300,000. */
  idleTimeoutMs?: number
  limits?: Partial<ModelLimits>
  /** Default: the global one. */
  fetch?: typeof fetch
}

export function streamSettings({ retry, idleTimeoutMs = 300_000, limits }: ProviderOptions) {
  return { retry: { ...defaultRetryPolicy, ...retry }, idleTimeoutMs, limits: { ...defaultModelLimits, ...limits } }
}

export function providerCall(options: ProviderOptions, url: string, headers: Record<string, string>, body: JsonObject): ProviderCall {
  return {
    url,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers, ...options.headers },
    // Lone surrogates are replaced, because several providers reject a whole request for one.
    body: JSON.stringify(toStorableJson({ ...body, ...options.body }, 256)),
    // Called as a plain function, because browsers reject a `fetch` whose `this` is not the window.
    fetch: (input, init) => (options.fetch ?? fetch)(input, init),
  }
}
