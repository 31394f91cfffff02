/**
 * One HTTP request to a provider, and its response as server-sent events.
 *
 * Whatever ends the iteration (the last event, a reader that stops, an abort, a timeout) also ends the request, so no body stays open.
 * Every failure is an `AgentError` that states whether a retry may help. This module does not retry.
 */
import { untilAborted } from '@rivulet/protocol'
import { AgentError, type AgentErrorOptions, messageOf } from '../agent-error.ts'
import type { ModelLimits } from '../model/limits.ts'
import { askedDelayMs } from './retry-delay.ts'
import { createServerEventDecoder, type ServerEvent } from './server-events.ts'

/** The longest time spent on reading the body of an error response. Its status is already known. */
const maxErrorMs = 5_000

export type ProviderCall = { url: string; headers: Record<string, string>; body: string; fetch: typeof fetch }

type ProviderCallOptions = {
  signal: AbortSignal
  limits: ModelLimits
  /** The longest silence, read again for each wait. */
  patienceMs: () => number
}

export async function* callProvider(call: ProviderCall, { signal, limits, patienceMs }: ProviderCallOptions): AsyncGenerator<ServerEvent> {
  const request = new AbortController()
  const endRequest = () => request.abort()
  signal.addEventListener('abort', endRequest)
  try {
    signal.throwIfAborted()
    const { url, headers, body, fetch } = call
    const response = await patiently(fetch(url, { method: 'POST', headers, body, signal: request.signal }))
    if (!response.ok) throw await statusError(response)
    if (!mayBeEvents(response)) throw await contentTypeError(response)
    yield* eventsOf(response)
  } finally {
    signal.removeEventListener('abort', endRequest)
    endRequest()
  }

  async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
    const decoder = createServerEventDecoder(limits.eventChars)
    for await (const bytes of chunksOf(response)) yield* decoder.feed(bytes)
    yield* decoder.end()
  }

  async function* chunksOf(response: Response, waitMs = patienceMs): AsyncGenerator<Uint8Array> {
    const reader = response.body?.getReader()
    if (!reader) return
    for (;;) {
      const { done, value } = await patiently(reader.read(), waitMs)
      if (done) return
      yield value
    }
  }

  /** Only waits for the provider are timed, because a reader that is slow with an event is not the provider's silence. */
  async function patiently<T>(waitedFor: Promise<T>, waitMs = patienceMs): Promise<T> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), waitMs())
    try {
      return await untilAborted(waitedFor, silence.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof AgentError) throw error
      if (silence.signal.aborted)
        throw new AgentError(`The model provider sent nothing for ${waitMs()} ms (idleTimeoutMs)`, { cause: error, isRetryable: true })
      throw failureOf('The connection to the model provider failed', messageOf(error), { cause: error, isRetryable: true })
    } finally {
      clearTimeout(timer)
    }
  }

  async function statusError(response: Response): Promise<AgentError> {
    const { status, headers } = response
    const isRetryable = isRetryableStatus(status)
    const options = {
      code: isRetryable ? 'agent_error' : 'model_refused',
      status,
      isRetryable,
      retryAfterMs: askedDelayMs(headers),
    } as const
    return failureOf(`The model provider returned ${status}`, errorTextOf(await beginningOf(response)), options)
  }

  /** A success status without a stream: an error that the provider sent with status 200, or a page of a proxy. */
  async function contentTypeError(response: Response): Promise<AgentError> {
    const type = response.headers.get('content-type')
    return failureOf(`The model provider returned ${type} instead of an event stream`, errorTextOf(await beginningOf(response)))
  }

  async function beginningOf(response: Response): Promise<string> {
    const decoder = new TextDecoder()
    let text = ''
    let bytes = 0
    const until = performance.now() + maxErrorMs
    const waitMs = () => Math.min(patienceMs(), until - performance.now())
    try {
      for await (const chunk of chunksOf(response, waitMs)) {
        text += decoder.decode(chunk.subarray(0, limits.errorBytes - bytes), { stream: true })
        bytes += chunk.length
        if (bytes >= limits.errorBytes) break
      }
    } catch {
      signal.throwIfAborted() // Otherwise the status is enough.
    }
    return text
  }
}

/** An error that the provider sent inside the stream. */
export function inBandError(error: unknown): AgentError {
  const { code, type, status } = fieldsOf(error)
  const number = [code, status].map(Number).find(value => value >= 400 && value < 600)
  const isRetryable =
    number === undefined ? /overloaded|rate_?limit|server_error|api_error|timeout/.test(`${type} ${code}`) : isRetryableStatus(number)
  return failureOf('The model failed', errorTextOf(error), { status: number, isRetryable })
}

/** The provider's own words may name accounts, keys and hosts: they are not for viewers. */
function failureOf(what: string, providerText: string, options: AgentErrorOptions = {}): AgentError {
  return new AgentError(`${what}: ${providerText}`, { ...options, publicMessage: what })
}

function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500
}

function mayBeEvents(response: Response): boolean {
  return !/\b(json|html)\b/.test(response.headers.get('content-type') ?? '')
}

/** The message of an error in any provider's shape, as JSON text or as a value. */
function errorTextOf(error: unknown): string {
  const value = typeof error === 'string' ? (parseJson(error) ?? error) : error
  if (typeof value === 'string') return value.trim() || 'no reason given'
  const fields = fieldsOf(value)
  const inner = fields.error ?? fields.message ?? fields.detail
  return inner === undefined || inner === null ? JSON.stringify(value) : errorTextOf(inner)
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
