/**
 * One HTTP request to a provider, and its answer as server-sent events.
 *
 * Whatever ends the iteration (the last event, a reader that has enough, an abort, silence) ends the request as well: no body is left open.
 * Every failure is an `AgentError` that says whether asking again may help.
 */
import { untilAborted } from './abort.ts'
import { AgentError, messageOf } from './agent-error.ts'
import type { ModelLimits } from './limits.ts'
import { askedDelayMs } from './retry-delay.ts'
import { createServerEventDecoder, type ServerEvent } from './server-events.ts'

/** How long the reason of a refusal is waited for, all of it: that it is one is known. */
const maxErrorMs = 5_000

export type ProviderCall = { url: string; headers: Record<string, string>; body: string; fetch: typeof fetch }

export type ProviderCallOptions = {
  signal: AbortSignal
  limits: ModelLimits
  /** How long nothing may come, asked anew for each wait. */
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
    if (!response.ok) throw await refusalOf(response)
    if (!mayBeEvents(response)) throw await surpriseOf(response)
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

  /** Only waits are timed: a reader that takes its time over an event is not the provider's silence. */
  async function patiently<T>(waitedFor: Promise<T>, waitMs = patienceMs): Promise<T> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), waitMs())
    try {
      return await untilAborted(waitedFor, silence.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof AgentError) throw error
      const what = silence.signal.aborted ? `The model said nothing for ${waitMs()} ms` : `The model is out of reach: ${messageOf(error)}`
      throw new AgentError(what, { cause: error, isRetryable: true })
    } finally {
      clearTimeout(timer)
    }
  }

  async function refusalOf(response: Response): Promise<AgentError> {
    const { status, headers } = response
    const isRetryable = isRetryableStatus(status)
    const options = {
      code: isRetryable ? 'agent_error' : 'model_refused',
      status,
      isRetryable,
      retryAfterMs: askedDelayMs(headers),
    } as const
    return new AgentError(`The model answered ${status}: ${errorTextOf(await beginningOf(response))}`, options)
  }

  /** A success that is no stream: an error in disguise, or a page of some proxy. */
  async function surpriseOf(response: Response): Promise<AgentError> {
    const type = response.headers.get('content-type')
    return new AgentError(`The model answered with ${type} instead of a stream: ${errorTextOf(await beginningOf(response))}`)
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
      signal.throwIfAborted() // else the status says enough
    }
    return text
  }
}

/** An error that is told within the stream. */
export function inBandError(error: unknown): AgentError {
  const { code, type, status } = fieldsOf(error)
  const number = [code, status].map(Number).find(value => value >= 400 && value < 600)
  const isRetryable =
    number === undefined ? /overloaded|rate_?limit|server_error|api_error|timeout/.test(`${type} ${code}`) : isRetryableStatus(number)
  return new AgentError(`The model failed: ${errorTextOf(error)}`, { status: number, isRetryable })
}

function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500
}

function mayBeEvents(response: Response): boolean {
  return !/\b(json|html)\b/.test(response.headers.get('content-type') ?? '')
}

/** The sentence in an error of any provider's shape, given as JSON text or as a value. */
function errorTextOf(error: unknown): string {
  const value = typeof error === 'string' ? (parseJson(error) ?? error) : error
  if (typeof value === 'string') return value.trim().slice(0, 500) || 'no reason given'
  const fields = fieldsOf(value)
  const inner = fields.error ?? fields.message ?? fields.detail
  return inner === undefined || inner === null ? JSON.stringify(value).slice(0, 500) : errorTextOf(inner)
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
