import { expect, test } from 'vitest'
import { RivuletChatTransport } from './rivulet-chat-transport.ts'

const answer = 'id: 1-1\ndata: {"type":"start"}\n\ndata: [DONE]\n\n'

test.each([
  [409, 'in_flight'],
  [429, 'rate_limited'],
  [502, 'no code of ours'],
  [504, 'no code of ours'],
])('a %i %s is retried with the same key', async (status, code) => {
  const keys: unknown[] = []
  const refusal = () => Response.json({ error: { code, message: 'Later' } }, { status, headers: { 'retry-after': '0' } })
  const transport = transportOf(async (_, init) => {
    keys.push(new Headers(init?.headers).get('idempotency-key'))
    return keys.length === 1 ? refusal() : new Response(answer)
  })
  expect(await chunksOf(await send(transport))).toEqual([{ type: 'start' }])
  expect([keys.length, new Set(keys).size]).toEqual([2, 1])
})

test('a refusal that a retry cannot change is thrown at once, with its code', async () => {
  let requests = 0
  const transport = transportOf(async () => {
    requests += 1
    return Response.json({ error: { code: 'task_busy', message: 'Busy' } }, { status: 409 })
  })
  await expect(send(transport)).rejects.toMatchObject({ code: 'task_busy', message: 'Busy' })
  expect(requests).toBe(1)
})

test.each([
  ['before the head of its response', () => new Promise<Response>(() => {})],
  ['within its stream', async () => new Response(new ReadableStream())],
])('a connection that is silent %s is replaced', async (_, silent) => {
  let requests = 0
  const transport = transportOf((_, init) => {
    requests += 1
    return requests === 1 ? Promise.race([silent(), aborted(init?.signal)]) : Promise.resolve(new Response(answer))
  }, 20)
  expect(await chunksOf(await send(transport))).toEqual([{ type: 'start' }])
  expect(requests).toBe(2)
})

test('a reader that cancels while it waits for a chunk ends the request', async () => {
  let signal: AbortSignal | null | undefined
  const transport = transportOf(async (_, init) => {
    signal = init?.signal
    return new Response(new ReadableStream())
  })
  const reader = (await send(transport)).getReader()
  const chunk = reader.read()
  await reader.cancel()
  expect([await chunk, signal?.aborted]).toEqual([{ done: true, value: undefined }, true])
})

function transportOf(fetching: typeof fetch, silenceMs = 60_000): RivuletChatTransport {
  return new RivuletChatTransport({ url: 'http://api.test', agent: 'assistant', fetch: fetching, silenceMs })
}

function send(transport: RivuletChatTransport) {
  const messages = [{ id: 'm1', role: 'user' as const, parts: [{ type: 'text' as const, text: 'Hello' }] }]
  return transport.sendMessages({ trigger: 'submit-message', chatId: 'chat', messageId: undefined, messages, abortSignal: undefined })
}

async function chunksOf(stream: ReadableStream<unknown>): Promise<unknown[]> {
  const chunks: unknown[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

/** Rejects when the signal ends the request, as `fetch` does. */
function aborted(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
}
