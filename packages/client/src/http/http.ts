/**
 * Requests to the API. The client retries a call, with the same Idempotency-Key, if there was no response or if the error may be temporary; a
 * limited number of times, and not after the caller has aborted. A rejected token is renewed once.
 */
import { untilAborted } from '@rivulet/protocol'
import { pause, retryDelayMs, type WakeUps } from './backoff.ts'
import type { Credentials } from './credentials.ts'
import { linkAbort } from './link-abort.ts'
import { errorOf, mayPass, rejectionOf, unreachable } from './rejection.ts'
import type { Read } from './responses.ts'

export type CallOptions = { signal?: AbortSignal | undefined }

/** Of a URL. What is undefined is left out. */
export type Query = Readonly<Record<string, string | number | true | undefined>>

export type Call<T> = CallOptions & {
  /** Default GET. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  query?: Query | undefined
  body?: unknown
  /** The header If-Match. */
  ifMatch?: string
  /** Default: a new one for every POST, and none for other methods. Null: none. */
  idempotencyKey?: string | null | undefined
  /** Tries after the first. Default: the client's. */
  retries?: number
  read: Read<T>
  /** What a final error means after so many retries, any of which may have got through; throws it if it is one. */
  refused?: (error: unknown, retries: number) => T
}

export type Http = {
  call<T>(call: Call<T>): Promise<T>
  /** One try at an event stream: a 200 or 204, or an error. With a body, by POST. */
  open(path: string, signal: AbortSignal, body?: unknown): Promise<Response>
  /** One try at a request whose bytes take as long as they take: a 2xx, or an error. `by` sends it in another way than `fetch`. */
  transfer(path: string, init: RequestInit, by?: Sender): Promise<Response>
  /** What a stream says of the token that it was opened with. */
  freshToken(token: string): void
}

/** Sends a request to a whole URL. */
type Sender = (url: string, init: RequestInit) => Promise<Response>

type HttpDeps = {
  url: string
  fetch: typeof fetch
  credentials: Credentials
  wakeUps: WakeUps
  random: () => number
  /** Tries of a call after the first. */
  maxRetries: number
  /** For each try. */
  timeoutMs: number
}

export function createHttp({ url, fetch, credentials, wakeUps, random, maxRetries, timeoutMs }: HttpDeps): Http {
  const base = url.replace(/\/+$/, '')
  return { call, open, transfer, freshToken: credentials.succeed }

  async function call<T>({
    method = 'GET',
    path,
    query = {},
    body,
    ifMatch,
    idempotencyKey,
    retries: limit = maxRetries,
    read,
    refused,
    signal,
  }: Call<T>): Promise<T> {
    const key = idempotencyKey === undefined && method === 'POST' ? randomKey() : (idempotencyKey ?? null)
    const init: RequestInit = {
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
        ...(key !== null && { 'idempotency-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
    for (let retries = 0; ; retries += 1) {
      try {
        return await within(timeoutMs, signal, async limited => {
          const response = await send(`${path}${queryText(query)}`, { ...init, signal: limited })
          if (!response.ok) throw await errorOf(response)
          return read(response)
        })
      } catch (error) {
        if (retries >= limit || !mayPass(error)) {
          if (refused) return refused(error, retries)
          throw error
        }
        const asked = rejectionOf(error)?.retryAfterMs
        await pause(asked ?? retryDelayMs(retries, random), { signal, wakeUps })
      }
    }
  }

  async function open(path: string, signal: AbortSignal, body?: unknown): Promise<Response> {
    const init: RequestInit & { cache: 'no-store' } = {
      ...{ cache: 'no-store', signal },
      headers: { accept: 'text/event-stream', ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    }
    const response = await send(path, init)
    if (!response.ok) throw await errorOf(response)
    if (response.status === 200 && !/^text\/event-stream\b/.test(response.headers.get('content-type') ?? '')) {
      throw unreachable('Not a response of Rivulet')
    }
    return response
  }

  async function transfer(path: string, init: RequestInit, by?: Sender): Promise<Response> {
    const response = await send(path, init, by)
    if (!response.ok) throw await errorOf(response)
    return response
  }

  async function send(path: string, init: RequestInit, by?: Sender): Promise<Response> {
    const purpose = init.method === undefined || init.method === 'GET' ? 'read' : 'change'
    const token = await untilAborted(credentials.token(purpose), init.signal)
    const response = await sendWith(token, path, init, by)
    if (response.status !== 401) return response
    const renewed = await untilAborted(credentials.renewed(token, purpose), init.signal)
    if (renewed === null) return response
    response.body?.cancel().catch(() => {})
    return sendWith(renewed, path, init, by)
  }

  async function sendWith(token: string | null, path: string, init: RequestInit, by: Sender = fetch): Promise<Response> {
    const headers = { ...(init.headers as Record<string, string>), ...(token !== null && { authorization: `Bearer ${token}` }) }
    try {
      return await by(`${base}${path}`, { ...init, headers })
    } catch (error) {
      if (init.signal?.aborted) throw init.signal.reason
      throw unreachable(`No answer from ${base}`, error)
    }
  }
}

/** Work that ends with the caller's signal, or is given up after a time. */
async function within<T>(ms: number, signal: AbortSignal | undefined, work: (limited: AbortSignal) => Promise<T>): Promise<T> {
  const { controller, unlink } = linkAbort(signal)
  const timer = setTimeout(() => controller.abort(unreachable(`No answer within ${ms} ms`)), ms)
  try {
    return await work(controller.signal)
  } catch (error) {
    // Reading a body that is aborted fails in as many ways as there are implementations of it.
    if (controller.signal.aborted) throw controller.signal.reason
    throw error
  } finally {
    clearTimeout(timer)
    unlink()
  }
}

export function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)] as [string, string]]))
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}

/** Finds what has all of these metadata. */
export function metadataQuery(metadata: Readonly<Record<string, string>> = {}): Query {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`metadata.${name}`, value]))
}

/** `crypto.randomUUID` is missing where a page came over plain HTTP: a phone that looks at a laptop. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}
