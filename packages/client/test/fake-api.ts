/** A scripted API without a socket: the test passes its `fetch` to the client and writes its streams by hand. */
import type { Cursor, Event, WireEvent } from '@rivulet/protocol'
import { until } from '../../../test/support/until.ts'

export type FakeRequest = { method: string; path: string; headers: Headers; body: unknown; signal: AbortSignal | null }

export type FakeStream = {
  /** Null until it is answered with. */
  request: FakeRequest
  response: Response
  send(cursor: Cursor, event: Event | WireEvent): void
  raw(text: string): void
  /** The server says goodbye. */
  end(): void
  /** The connection breaks. */
  cut(): void
  /** Whether the client has let go of it. */
  isLeft(): boolean
}

export type FakeApi = ReturnType<typeof createFakeApi>

export function createFakeApi(
  respond: (request: FakeRequest, api: { requests: FakeRequest[] }) => Response | Promise<Response> | FakeStream,
) {
  const requests: FakeRequest[] = []
  const streams: FakeStream[] = []
  return { fetch, requests, streams, stream, pathsOf }

  async function fetch(input: string | URL | { url: string }, init: RequestInit = {}): Promise<Response> {
    const url = new URL(typeof input === 'object' && 'url' in input ? input.url : input)
    const request: FakeRequest = {
      method: init.method ?? 'GET',
      path: url.pathname + url.search,
      headers: new Headers(init.headers as Record<string, string>),
      body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined,
      signal: init.signal ?? null,
    }
    if (init.signal?.aborted) throw init.signal.reason
    requests.push(request)
    const made = respond(request, { requests })
    if (!('response' in made)) return made
    made.request = request
    streams.push(made)
    return made.response
  }

  /** The n-th stream that was opened, from 0; waits for it. */
  function stream(place: number): Promise<FakeStream> {
    return until(`stream ${place} is opened`, () => streams[place])
  }

  function pathsOf(method: string): string[] {
    return requests.filter(request => request.method === method).map(({ path }) => path)
  }
}

export function openStream(): FakeStream {
  const encoder = new TextEncoder()
  let isLeft = false
  let sink: { enqueue(chunk: Uint8Array): void; close(): void; error(reason: unknown): void } | null = null
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      sink = controller
    },
    cancel() {
      isLeft = true
    },
  })
  const raw = (text: string) => {
    if (!isLeft) sink?.enqueue(encoder.encode(text))
  }
  return {
    request: { method: '', path: '', headers: new Headers(), body: undefined, signal: null },
    response: new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } }),
    send: (cursor, event) => raw(`id: ${cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    raw,
    end: () => sink?.close(),
    cut: () => sink?.error(new TypeError('terminated')),
    isLeft: () => isLeft,
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } })
}

export function rejection(status: number, code: string, headers: Record<string, string> = {}): Response {
  return json(status, { error: { code, message: `It is ${code}`, requestId: 'r-1' } }, headers)
}
