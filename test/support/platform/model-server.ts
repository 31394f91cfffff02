/** A model behind the API of OpenAI, on a real socket: it calls the calculator first, and then replies. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type ModelServer = { url: string; requests: ModelRequest[]; close(): Promise<void> }

export type ModelRequest = { traceparent: string | undefined; authorization: string | undefined }

/** `delayMs` is how long it thinks before each answer. */
export async function startModelServer({ delayMs = 0 } = {}): Promise<ModelServer> {
  const requests: ModelRequest[] = []
  const server = createServer(async (request, response) => {
    const { authorization, traceparent } = request.headers
    requests.push({ authorization, traceparent: typeof traceparent === 'string' ? traceparent : undefined })
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const { messages } = JSON.parse(Buffer.concat(parts).toString()) as { messages: { role: string; content: string }[] }
    const last = messages.at(-1)
    await sleep(delayMs)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end([...(last?.role === 'tool' ? spoken : asking(last?.content ?? '')), '[DONE]'].map(data => `data: ${data}\n\n`).join(''))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, requests, close }

  async function close(): Promise<void> {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
}

const spoken = [chunk({ content: 'It is 2.' }), chunk({}, 'stop')]

function asking(expression: string): string[] {
  const call = { index: 0, id: 'call_1', function: { name: 'calculate', arguments: JSON.stringify({ expression }) } }
  return [chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')]
}

function chunk(delta: object, finish_reason: string | null = null): string {
  return JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })
}
