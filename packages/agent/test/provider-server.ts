/** A scripted provider on a real socket: splits chunks anywhere, stalls, sends malformed data, hangs up. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'

export type ProviderResponse = {
  status?: number
  headers?: Record<string, string>
  /** Each is one chunk on the wire. The server awaits a promise before it sends the next chunk. */
  chunks?: Iterable<string | Uint8Array | Promise<void>>
  /** How the response ends: properly, by a cut connection, or not at all. Default: properly. */
  ending?: 'end' | 'hang up' | 'stay open'
}

type ProviderServer = {
  url: string
  /** The requests so far, parsed. */
  requests: { path: string; headers: IncomingHttpHeaders; body: Record<string, unknown> }[]
  /** The number of responses that have not ended. */
  openResponses(): number
}

/** @param responses in the order of the requests; the last one is repeated. */
export async function withProvider<T>(responses: ProviderResponse[], use: (server: ProviderServer) => Promise<T>): Promise<T> {
  const requests: ProviderServer['requests'] = []
  const open = new Set<ServerResponse>()
  const server = createServer((request, response) => void handle(request, response).catch(() => response.destroy()))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    return await use({ url: `http://127.0.0.1:${port}`, requests, openResponses: () => open.size })
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    requests.push({ path: request.url ?? '', headers: request.headers, body: JSON.parse(Buffer.concat(parts).toString() || '{}') })
    const scripted = responses[Math.min(requests.length, responses.length) - 1] ?? {}
    open.add(response)
    response.on('close', () => open.delete(response))
    response.writeHead(scripted.status ?? 200, { 'content-type': 'text/event-stream', ...scripted.headers })
    response.flushHeaders()
    for (const chunk of scripted.chunks ?? []) {
      if (chunk instanceof Promise) await chunk
      else response.write(chunk)
      await setImmediate()
      if (response.destroyed) return
    }
    if (scripted.ending === 'hang up') response.destroy()
    else if (scripted.ending !== 'stay open') response.end()
  }
}

/** Server-sent events with these values as data, as most providers send them. */
export function sse(...values: unknown[]): string {
  return values.map(value => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`).join('')
}

/** Server-sent events as Anthropic sends them: the event name is the type. */
export function namedSse(...values: { type: string; [field: string]: unknown }[]): string {
  return values.map(value => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`).join('')
}

/** The text's bytes in pieces of `size`. */
export function inPieces(text: string, size: number): Uint8Array[] {
  const bytes = new TextEncoder().encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, at * size + size))
}

export function chunk(delta: Record<string, unknown>, finish_reason: string | null = null, more: Record<string, unknown> = {}): unknown {
  return { choices: [{ index: 0, delta, finish_reason }], ...more }
}

export function callChunk(call: Record<string, unknown>): unknown {
  return chunk({ tool_calls: [call] })
}
