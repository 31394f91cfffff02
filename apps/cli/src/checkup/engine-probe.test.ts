import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { afterEach, expect, inject, test } from 'vitest'
import { probePostgres, probeRedis } from './engine-probe.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

test('the real ones are recognized, and not taken for each other', async () => {
  await expect(probeRedis(inject('redisUrl'))).resolves.toBeUndefined()
  await expect(probePostgres(inject('postgresUrl'))).resolves.toBeUndefined()
  await expect(probeRedis(await listening('HTTP/1.1 400 Bad Request\r\n\r\n'))).rejects.toThrow('does not answer as Redis does')
  await expect(probePostgres(await listening('HTTP/1.1 400 Bad Request\r\n\r\n'))).rejects.toThrow('does not answer as Postgres does')
})

test('of a cluster, the server that is named first is asked', async () => {
  await expect(probeRedis(`${inject('redisUrl')},127.0.0.1:1`)).resolves.toBeUndefined()
})

test('of Sentinels, the one that is named first is asked', async () => {
  const { host } = new URL(await listening('+PONG\r\n'))
  await expect(probeRedis(`redis+sentinel://:secret@${host},127.0.0.1:1/main`)).resolves.toBeUndefined()
  await expect(probeRedis('redis+sentinel://:secret@127.0.0.1:1/main')).rejects.toThrow(/^127\.0\.0\.1:1 refuses connections$/)
})

test('no server and a server that closes the connection give different reasons; a password is never repeated', async () => {
  const url = await listening('')
  await expect(probeRedis(url)).rejects.toThrow(/127\.0\.0\.1:\d+ hangs up/)
  for (const server of servers.splice(0)) await new Promise(resolve => server.close(resolve))
  const error = await probeRedis(url.replace('//', '//user:secret@')).catch((reason: Error) => reason.message)
  expect(error).toMatch(/^127\.0\.0\.1:\d+ refuses connections$/)
})

async function listening(reply: string): Promise<string> {
  const server = createServer(socket =>
    socket
      .on('error', () => {})
      .resume()
      .end(reply),
  ).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const address = server.address()
  return `redis://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
}
