/** A webhook cannot reach what is not on the public internet. */
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isPrivateAddress, requirePublicHost } from './private-addresses.ts'
import { callWebhook, type Resolve } from './webhook-request.ts'
import { resultOf, retryDelaysMs } from './webhooks.ts'

describe('an address', () => {
  test.each([
    ...['127.0.0.1', '127.9.9.9', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'],
    ...[
      '255.255.255.255',
      '224.0.0.1',
      '::1',
      '::',
      'fe80::1',
      'fc00::1',
      'fd12::1',
      '::ffff:127.0.0.1',
      '::ffff:a00:1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '::127.0.0.1',
      '::a00:1',
      '::ffff:0:127.0.0.1',
      '::ffff:0:a00:1',
      '3fff::1',
      '3fff:fff::1',
      '5f00::1',
      '5f00:ffff::1',
    ],
    ...['not an address', ''],
  ])('%s is private', address => {
    expect(isPrivateAddress(address)).toBe(true)
  })

  test.each(['1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '::ffff:1.1.1.1', '3ffe::1'])('%s is public', address => {
    expect(isPrivateAddress(address)).toBe(false)
  })

  test.each([
    ...[
      'http://127.0.0.1',
      'http://2130706433',
      'http://0x7f.1',
      'http://[::1]:80',
      'http://localhost',
      'http://LOCALHOST.',
      'http://a.localhost',
    ],
    ...['http://[::127.0.0.1]', 'http://[::ffff:0:127.0.0.1]', 'http://[3fff::1]', 'http://[5f00::1]'],
    ...['http://[::ffff:10.0.0.1]', 'http://metadata.google.internal', 'http://printer.local'],
  ])('%s is rejected when it is given, however it is spelled', url => {
    expect(() => requirePublicHost(url, '/url')).toThrow('Request validation failed')
  })
})

test('a name that resolves to a private address is rejected where the connection is made, whatever it resolved to before', async () => {
  let calls = 0
  const server = createServer((_, response) => {
    calls += 1
    response.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const resolve: Resolve = (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }])
  const call = { url: `http://rebound.example:${port}/`, headers: {}, body: '{}', timeoutMs: 5_000, resolve }
  expect(await callWebhook({ ...call, allowPrivate: false })).toEqual({ error: expect.stringContaining('private') })
  expect(calls).toBe(0)
})

describe('an attempt ends', () => {
  const head = 'HTTP/1.1 200 OK\r\n'
  const ok = { status: 200 }
  const noResponse = { error: 'No response within 300 ms' }
  const broken = { error: expect.stringMatching(/hang up|ECONNRESET|EPIPE|closed/) }
  const malformed = { error: expect.stringMatching(/Parse Error|hang up/) }

  const receivers: [string, object, (socket: Socket) => void][] = [
    ['closes without a response', broken, socket => void socket.end()],
    ['resets the connection', broken, socket => void socket.resetAndDestroy()],
    ['closes in the middle of a header', broken, socket => void socket.end(`${head}content-`)],
    ['responds that it switches protocols', { status: 101 }, switchProtocols],
    ['responds that it switches protocols, and keeps sending', { status: 101 }, socket => sendForever(switchProtocols(socket))],
    ['responds and closes', ok, socket => void socket.end(`${head}\r\nbody`)],
    [
      'resets the connection in the middle of a body',
      ok,
      socket => socket.write(`${head}content-length: 9\r\n\r\nhalf`, () => socket.resetAndDestroy()),
    ],
    ['sends a body without an end', ok, socket => sendForever(socket, `${head}\r\n`)],
    ['sends a part of a body, then nothing', ok, socket => void socket.write(`${head}content-length: 9\r\n\r\nhalf`)],
    ['sends a malformed chunk', ok, socket => void socket.write(`${head}transfer-encoding: chunked\r\n\r\nzz\r\n`)],
    ['sends headers without an end', malformed, socket => sendForever(socket, `${head}x: `)],
    ['sends another protocol', malformed, socket => void socket.write('SSH-2.0-OpenSSH_9.6\r\n')],
    ['sends interim responses alone', noResponse, socket => void socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(5))],
    ['sends nothing', noResponse, () => {}],
  ]

  test.each(receivers)('when its receiver %s', async (_, expected, receive) => {
    const sockets = new Set<Socket>()
    const server = createSocketServer(socket => {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('data', () => receive(socket))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    // A receiver that responds has the time that a slow machine needs.
    const timeoutMs = expected === noResponse ? 300 : 5_000
    const call = { url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}', allowPrivate: true, timeoutMs }
    expect(await callWebhook(call)).toEqual(expected)
    await expect.poll(() => [...sockets].every(({ destroyed }) => destroyed)).toBe(true)
  })

  test('when its name is never resolved', async () => {
    const call = { url: 'http://slow.example/', headers: {}, body: '{}', allowPrivate: false, timeoutMs: 300, resolve: () => {} }
    expect(await callWebhook(call)).toEqual(noResponse)
  })

  function switchProtocols(socket: Socket): Socket {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
    return socket
  }

  function sendForever(socket: Socket, first = ''): void {
    socket.write(first)
    const send = () => {
      while (socket.writable && socket.write('x'.repeat(4_096)));
    }
    socket.on('drain', send)
    send()
  }
})

test('attempts are spread over three days, and then end', () => {
  const delays = Array.from({ length: 10 }, (_, i) => resultOf({ status: 500 }, i + 1)).map(result =>
    result.at === 'failed' ? result.retryInMs : 0,
  )
  expect(delays.at(-1)).toBeNull()
  const total = retryDelaysMs.reduce((sum, ms) => sum + ms, 0)
  expect(total / 3_600_000).toBeGreaterThan(72)
  expect(resultOf({ status: 410 }, 1)).toMatchObject({ at: 'failed', retryInMs: null })
  expect(resultOf({ error: 'no' }, 1)).toMatchObject({ lastStatus: null, lastError: 'no' })
})
