/** An event stream as the response of a real server: its heartbeats, and the end of a client that reads nothing. The clock of the writers is driven by hand. */
import { type AddressInfo, connect, type Socket } from 'node:net'
import { fastify } from 'fastify'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { type SseWriter, SseWriters } from '../stream/sse-writer.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { respondWithEvents } from './event-response.ts'

const task = '0198c0de-0000-7000-8000-000000000001'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

test('a client that reads nothing is cut: counted, logged, and its place is free again', async () => {
  const { open, metrics, lines, over, gone } = await serve()
  const { client, writer } = await open()
  client.pause()
  // The sockets of the system take a few megabytes first.
  const fillForASecond = async () => {
    while (writer.at === 'open') writer.send('x'.repeat(256 * 1024))
    await vi.advanceTimersByTimeAsync(1_000)
    return over.mock.calls.length
  }
  await expect.poll(fillForASecond).toBe(1)
  expect(gone).toHaveBeenCalledTimes(1)
  expect((await metrics.cutViewers.get()).values[0]?.value).toBe(1)
  expect(lines().filter(({ msg }) => msg === 'closed a viewer that read nothing')).toEqual([expect.objectContaining({ task })])
})

test('a client that reads gets heartbeats, and one that leaves is not counted as cut', async () => {
  const { open, metrics, over, gone } = await serve()
  const { client, received } = await open()
  await vi.advanceTimersByTimeAsync(15_000)
  await expect.poll(received).toContain(': hb\n')
  expect(over).not.toHaveBeenCalled()
  client.destroy()
  await expect.poll(() => over).toHaveBeenCalledTimes(1)
  expect(gone).toHaveBeenCalledTimes(1)
  expect((await metrics.cutViewers.get()).values[0]?.value).toBe(0)
})

/** A server whose only route is an event stream to which the test writes. */
async function serve() {
  const [metrics, writers] = [createMetrics(), new SseWriters(1_000)]
  const [over, gone] = [vi.fn(), vi.fn()]
  const log: string[] = []
  const opened: SseWriter[] = []
  const app = fastify({ logger: { stream: { write: line => void log.push(line) } } })
  app.get('/', (_, reply) =>
    respondWithEvents(reply, { admission: { watches: () => {}, opened: () => {}, over }, metrics, writers, task }, writer => {
      opened.push(writer)
      return { drained: () => {}, gone, leave: () => {}, sendToken: () => true }
    }),
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const clients: Socket[] = []
  onTestFinished(async () => {
    for (const client of clients) client.destroy()
    writers.close()
    await app.close()
  })
  return { open, metrics, over, gone, lines: () => log.map(line => JSON.parse(line) as { msg: string; task?: string }) }

  async function open() {
    const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    clients.push(client)
    let received = ''
    client.on('data', chunk => {
      received += chunk
    })
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await expect.poll(() => opened.length).toBe(1)
    const [writer] = opened as [SseWriter]
    return { client, writer, received: () => received }
  }
}
