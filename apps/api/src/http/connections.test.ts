import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { limitConnections } from './connections.ts'

test.each(['GET', 'POST'])('a %s whose body is not wanted gets its response, also where the body arrives after it', async method => {
  let responded: () => void = () => {}
  const hasResponded = new Promise<void>(resolve => (responded = resolve))
  const socket = await openSocket(responded)
  let fault: unknown = null
  socket.on('error', error => (fault = error))
  // A client that writes, and reads only then.
  socket.pause()
  socket.write(`${method} / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: 30000\r\n\r\n`)
  await hasResponded
  for (let i = 0; i < 30; i += 1) await new Promise(written => socket.write('x'.repeat(1_000), written))
  let text = ''
  socket.on('data', bytes => (text += bytes)).resume()
  if (!socket.closed) await once(socket, 'close')
  expect([fault, text]).toEqual([null, expect.stringMatching(/^HTTP\/1\.1 401 /)])
})

test('a response that waits behind another is closed with its connection', async () => {
  const app = fastify()
  limitConnections(app, { maxConnections: 10, stallMs: 10_000 }, () => {})
  const waiting: string[] = []
  const closed: string[] = []
  app.get('/:name', async ({ params }, { raw }) => {
    const { name } = params as { name: string }
    raw.once('close', () => closed.push(name))
    waiting.push(name)
    return name === 'second' ? 'ready' : new Promise(() => {})
  })
  const socket = await connectTo(app)
  socket.write(['first', 'second', 'third'].map(name => `GET /${name} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`).join(''))
  await until('all of them wait', () => waiting.length === 3)
  expect(closed).toEqual([])
  socket.destroy()
  await until('all of them are closed', () => closed.length === 3)
  expect(closed.sort()).toEqual(['first', 'second', 'third'])
})

async function openSocket(onHandled: () => void): Promise<Socket> {
  const app = fastify()
  limitConnections(app, { maxConnections: 10, stallMs: 10_000 }, () => {})
  app.all('/', async () => '')
  // As a wrong key is rejected: before the body is read.
  app.addHook('onRequest', async (_, reply) => {
    setImmediate(() => setImmediate(onHandled))
    return reply.status(401).send('no')
  })
  return connectTo(app)
}

async function connectTo(app: FastifyInstance): Promise<Socket> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}
