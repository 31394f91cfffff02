import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { encodeByteText } from '@rivulet/broker'
import type { Event } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { encodeEntry, encodeFrame, heartbeat, pieceOf } from './sse-frame.ts'
import { openSse, type SseEvents, type SseSocket, share } from './sse-response.ts'

const task = '0198c0de-0000-7000-8000-000000000001'

test('the same bytes serve clients that accept chunks and clients that do not', () => {
  const { plain, chunked } = share([pieceOf(Buffer.from('h\u00e4llo'))])
  expect(plain.toString()).toBe('h\u00e4llo')
  expect(chunked.toString()).toBe('6\r\nh\u00e4llo\r\n')
  expect(plain.buffer).toBe(chunked.buffer)
})

test('events that were encoded are decoded once, whatever they contain, and a heartbeat has none', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), texts => {
      const events = texts.map((data): Event => ({ type: 'custom', task, turn: 1, attempt: 1, at: 1, name: '\u2028', data }))
      const shared = share(events.map(event => encodeEntry({ cursor: '1-2', json: encodeByteText(JSON.stringify(event)) }, event)))
      expect(shared.frames.map(({ cursor, event }) => ({ cursor, event }))).toEqual(
        events.map(event => ({ cursor: '1-2', event: JSON.parse(Buffer.from(JSON.stringify(event)).toString()) })),
      )
      for (const frame of shared.frames) expect(frame.event).toBe(frame.event)
    }),
  )
  expect(share([pieceOf(heartbeat)]).frames).toEqual([])
})

test('frames are one chunk of the right size, alone and together, whatever they contain', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 3 }), texts => {
      const frames = texts.map(text => encodeFrame('1-2', 'custom', encodeByteText(JSON.stringify(text))))
      const { chunked, plain } = share(frames)
      expect(plain.toString()).toBe(texts.map(text => `event: custom\ndata: ${JSON.stringify(text)}\nid: 1-2\n\n`).join(''))
      expect(chunked.toString()).toBe(`${plain.length.toString(16)}\r\n${plain}\r\n`)
    }),
  )
})

test('a frame that leaves alone is not copied, and one of several is cut from their bytes', () => {
  const [first, second] = [encodeFrame('1-1', 'custom', encodeByteText('"a"')), encodeFrame('1-2', 'custom', encodeByteText('"b"'))]
  expect(share([first]).chunked.buffer).toBe(first.source.buffer)
  expect(share([first]).plain.equals(first.bytes)).toBe(true)
  const both = share([first, second])
  expect(both.frames.map(({ bytes }) => bytes.toString())).toEqual([first.bytes.toString(), second.bytes.toString()])
  const again = share(both.frames.slice(1))
  expect(again.plain.equals(second.bytes)).toBe(true)
})

test('an event that is parsed for a viewer is kept by what is shared, and not by the frame that a ring has', () => {
  const event = { type: 'custom', task, turn: 1, attempt: 1, at: 1, name: 'a', data: 1 }
  const frame = encodeFrame('1-1', 'custom', encodeByteText(JSON.stringify(event)))
  const shared = share([frame])
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  for (const { event: parsed } of [...shared.parsed, ...shared.parsed]) expect(parsed).toEqual(event)
  expect(parse).toHaveBeenCalledTimes(1)
  expect(frame.event).toEqual(event)
  expect(parse).toHaveBeenCalledTimes(2)
})

test('HTTP/1.1 gets chunks and a last one, HTTP/1.0 the bare bytes', async () => {
  const { ask, opened } = await serve()
  const [newer, older] = [ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), ask('GET / HTTP/1.0\r\n\r\n')]
  for (const response of await opened(2)) {
    response?.write(share([pieceOf(Buffer.from(': one\n\n'))]))
    response?.write(share([pieceOf(Buffer.from(': two\n\n'))]))
    response?.end()
    response?.end()
  }
  const [chunked = '', plain = ''] = await Promise.all([newer, older].map(socket => text(socket)))
  expect(chunked.slice(chunked.indexOf('\r\n\r\n') + 4)).toBe('7\r\n: one\n\n\r\n7\r\n: two\n\n\r\n0\r\n\r\n')
  expect(plain.slice(plain.indexOf('\r\n\r\n') + 4)).toBe(': one\n\n: two\n\n')
  for (const head of [chunked, plain]) {
    expect(head).toMatch(/content-type: text\/event-stream; charset=utf-8\r\n/i)
    expect(head).toMatch(/x-own: kept\r\n/i)
  }
})

test('a socket that is full says so, and says when it has drained', async () => {
  let drains = 0
  const { ask, opened } = await serve({ onDrain: () => (drains += 1) })
  const socket = ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  socket.pause()
  const [response] = await opened(1)
  const bytes = share([pieceOf(Buffer.alloc(256 * 1024))])
  let writes = 0
  while (response?.write(bytes)) writes += 1
  expect(response?.unsentBytes()).toBeGreaterThan(0)
  expect(drains).toBe(0)
  socket.resume()
  await expect.poll(() => drains).toBe(1)
  expect(response?.unsentBytes()).toBe(0)
  expect(writes).toBeGreaterThan(0)
})

test('the end of a connection is reported once, whichever side ends it', async () => {
  let closes = 0
  const { ask, opened } = await serve({ onClose: () => (closes += 1) })
  const socket = ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await opened(1)
  socket.destroy()
  await expect.poll(() => closes).toBe(1)
  ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [, second] = await opened(2)
  second?.destroy()
  await expect.poll(() => closes).toBe(2)
})

test('a request that waits behind another on its connection is answered when its time comes', async () => {
  const { ask, opened, requests } = await serve()
  const socket = ask('GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await expect.poll(() => requests.length).toBe(2)
  requests[0]?.end('first')
  const [second] = await opened(1)
  second?.write(share([pieceOf(Buffer.from(': second\n\n'))]))
  second?.end()
  const all = await text(socket)
  expect(all.indexOf('first')).toBeLessThan(all.indexOf(': second'))
  expect(all.endsWith('0\r\n\r\n')).toBe(true)
})

test('a client that is gone before its time has come gets nothing', async () => {
  const { ask, opened, requests } = await serve()
  const socket = ask('GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await expect.poll(() => requests.length).toBe(2)
  socket.destroy()
  expect(await opened(1)).toEqual([null])
})

/** A server that opens a stream for every request, except for `/slow`, which is left to the test. */
async function serve(events: Partial<SseEvents> = {}) {
  const responses: (SseSocket | null)[] = []
  const requests: ServerResponse[] = []
  const sockets: Socket[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    requests.push(response)
    if (request.url === '/slow') return
    void openSse(response, { 'x-own': 'kept' }, { onDrain: () => {}, onClose: () => {}, ...events }).then(opened => responses.push(opened))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  return { ask, opened, requests }

  function ask(request: string): Socket {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    sockets.push(socket)
    socket.write(request)
    return socket
  }

  async function opened(count: number): Promise<(SseSocket | null)[]> {
    await expect.poll(() => responses.length).toBe(count)
    return responses
  }
}
