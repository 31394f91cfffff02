/** The stream as clients of all kinds see it: old ones, simple ones, and those behind a proxy that does not care for frames. */
import { execFile, execFileSync } from 'node:child_process'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { type Chopping, startChoppingProxy } from '../support/viewers/chopping-proxy.ts'
import { watch } from '../support/viewers/viewer.ts'
import { openConnection } from '../support/viewers/viewer-connection.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const expected = 'w\u00f6rd \u{1f30a}\n'.repeat(15)
// A notice after each word, because the worker merges deltas that wait together, and these tests cut after a number of events.
const steps = [repeat(15, say(0, 'w\u00f6rd \u{1f30a}\n'), { custom: { name: 'tick', data: 0 } }, rest(20))]

test('HTTP/1.0 gets the bare bytes, and their end is the end of the connection', async () => {
  const { task } = await platform.client.createTask(scripted(steps))
  const reply = await rawRequest(`GET /v1/tasks/${task.id}/events?from=start HTTP/1.0\r\n\r\n`)
  const [head = '', ...body] = reply.split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(head.toLowerCase()).toContain('connection: close')
  expect(head.toLowerCase()).not.toContain('transfer-encoding')
  const events = parse(body.join('\r\n\r\n'))
  expect(textIn(events)).toBe(expected)
  expect(events.at(-1)?.event).toBe('end')
})

test('HTTP/1.1 gets whole chunks, and the last one closes the body', async () => {
  const { task } = await platform.client.createTask(scripted(steps))
  const reply = await rawRequest(`GET /v1/tasks/${task.id}/events?from=start HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  const [head = ''] = reply.split('\r\n\r\n', 1)
  expect(head.toLowerCase()).toContain('transfer-encoding: chunked')
  expect(reply.endsWith('\r\n0\r\n\r\n')).toBe(true)
  const events = parse(unchunk(Buffer.from(reply.slice(head.length + 4))))
  expect(textIn(events)).toBe(expected)
})

test('a native EventSource, which reconnects until it gets 204, gets it at the end', async () => {
  const { task } = await platform.client.createTask(scripted(steps))
  const heard: string[] = []
  const statuses: number[] = []
  let last: `${number}-${number}` | null = null
  while (statuses.at(-1) !== 204) {
    const { connection, closed } = openConnection({
      ...{ url: `${platform.url}/v1/tasks/${task.id}/events?from=start`, after: last, headers: { 'cache-control': 'no-cache' } },
      // Its page is put to sleep now and then.
      onFrame: (_, { frames }) => statuses.length >= 3 || frames.length < 4,
    })
    await closed
    statuses.push(connection.status)
    last = connection.frames.at(-1)?.id ?? last
    heard.push(...connection.frames.flatMap(({ data }) => (data.type === 'message.delta' && 'text' in data.delta ? [data.delta.text] : [])))
  }
  expect(statuses).toEqual([200, 200, 200, 200, 204])
  expect(heard.join('')).toBe(expected)
})

test.skipIf(!hasCurl())('curl shows it and ends with it, and resumes', async () => {
  const run = promisify(execFile)
  const { task } = await platform.client.createTask(scripted(steps))
  const url = `${platform.url}/v1/tasks/${task.id}/events`
  const all = parse((await run('curl', ['-sN', '--fail', `${url}?from=start`])).stdout)
  expect(textIn(all)).toBe(expected)
  const later = parse((await run('curl', ['-sN', '--fail', '-H', `Last-Event-ID: ${all[4]?.id}`, url])).stdout)
  expect(later.filter(({ event }) => event !== 'caught_up')).toEqual(all.slice(5).filter(({ event }) => event !== 'caught_up'))
  const old = parse((await run('curl', ['-sN', '--fail', '--http1.0', `${url}?from=start`])).stdout)
  expect(old.filter(({ event }) => event !== 'caught_up')).toEqual(all.filter(({ event }) => event !== 'caught_up'))
})

test.each<[string, Chopping]>([
  ['chops', { seed: 1, pieceBytes: 7 }],
  ['holds back', { seed: 2, pieceBytes: 100_000, heldBytes: 4_096 }],
  ['breaks', { seed: 3, pieceBytes: 50, breakAfter: random => 400 + Math.floor(random() * 2_000) }],
  ['breaks again', { seed: 4, pieceBytes: 500, breakAfter: random => 300 + Math.floor(random() * 1_500) }],
])('a proxy that %s changes nothing', async (_, chopping) => {
  const proxy = await startChoppingProxy(platform.url, chopping)
  onTestFinished(() => proxy.close())
  const { task } = await platform.client.createTask(scripted(steps, { input: 'go' }))
  const viewers = ['', '?from=start'].map(query => watch(task.id, { urls: [proxy.url], query }))
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  for (const viewer of viewers) expect(viewer.text()).toBe(expected)
  if (chopping.breakAfter) expect(viewers.every(({ journal }) => journal.connections.length > 2)).toBe(true)
})

test('a client that closes its side after asking is let go', async () => {
  const { task } = await platform.client.createTask(scripted([say(0, 'x'), rest(60_000)]))
  const socket = connect({ port: Number(new URL(platform.url).port), host: '127.0.0.1', allowHalfOpen: true })
  socket.end(`GET /v1/tasks/${task.id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await text(socket)
  await platform.client.cancel(task.id)
})

function rawRequest(request: string): Promise<string> {
  const socket = connect(Number(new URL(platform.url).port), '127.0.0.1')
  socket.write(request)
  return text(socket)
}

function parse(body: string): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  createParser({ onEvent: event => events.push(event) }).feed(body)
  return events
}

function textIn(events: EventSourceMessage[]): string {
  return events
    .filter(({ event }) => event === 'message.delta')
    .map(({ data }) => JSON.parse(data).delta.text)
    .join('')
}

function unchunk(body: Buffer): string {
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const line = body.indexOf('\r\n', at)
    const size = Number.parseInt(body.toString('latin1', at, line), 16)
    if (size === 0) return Buffer.concat(pieces).toString()
    pieces.push(body.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}

function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
