/** The viewers' process of resumable-stream: each viewer resumes the stream of its task. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createResumableStreamContext } from 'resumable-stream'
import { handleRequests } from '../child.ts'

const context = createResumableStreamContext({ waitUntil: null })

const server = createServer((request, response) => void follow(request.url?.slice(1) ?? '', response).catch(() => response.destroy()))
server.listen(0, '127.0.0.1')
await once(server, 'listening')

handleRequests({ port: () => (server.address() as AddressInfo).port })
process.on('SIGTERM', () => process.exit(0))

async function follow(stream: string, response: ServerResponse): Promise<void> {
  const resumed = await context.resumeExistingStream(stream)
  if (!resumed) return void response.writeHead(404).end()
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.flushHeaders()
  const reader = resumed.getReader()
  response.on('close', () => void reader.cancel())
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    if (chunk.value && !response.write(chunk.value)) await once(response, 'drain')
  }
  response.end()
}
