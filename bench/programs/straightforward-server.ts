/** The API of the straightforward way: a Redis connection with a blocking XREAD for each viewer. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { handleRequests } from '../child.ts'

const redisUrl = process.argv[2] ?? ''
const open = new Set<Redis>()

const server = createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.flushHeaders()
  const redis = new Redis(redisUrl)
  open.add(redis)
  response.on('close', () => {
    open.delete(redis)
    redis.disconnect()
  })
  // Closing the connection ends the read.
  follow(redis, request.url?.slice(1) ?? '', response).catch(() => response.destroy())
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

handleRequests({ port: () => (server.address() as AddressInfo).port })
process.on('SIGTERM', () => {
  for (const redis of open) redis.disconnect()
  process.exit(0)
})

async function follow(redis: Redis, stream: string, response: ServerResponse): Promise<void> {
  let cursor = '0-0'
  while (open.has(redis)) {
    const reply = await redis.xread('COUNT', 100, 'BLOCK', 5_000, 'STREAMS', stream, cursor)
    for (const [id, fields] of reply?.[0]?.[1] ?? []) {
      cursor = id
      if (!response.write(`id: ${id}\nevent: message.delta\ndata: ${fields[1]}\n\n`)) await once(response, 'drain')
    }
  }
}
