/**
 * Connections that are opened to hold memory: without a key, they send requests and read nothing. The attacks are counted, so a run ends by
 * itself; what the API process holds meanwhile is measured.
 */
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { metric } from '../support/platform/metrics.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { collectingOptions, heldMemory } from '../support/process/collect-garbage.ts'
import { until } from '../support/until.ts'
import { startProxy } from '../support/viewers/proxy.ts'
import { rawRequest, sendRaw } from '../support/viewers/raw-http.ts'

const MiB = 1024 * 1024
/** The largest files that the API serves without a key. */
const largest = ['/docs/static/swagger-ui-bundle.js', '/openapi.json']

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

describe('requests whose responses are not read', () => {
  let api: ApiProcess
  beforeAll(async () => {
    api = await platform.startApi({ env: collectingOptions })
    for (const path of largest) await (await fetch(`${api.url}${path}`)).arrayBuffer()
  })

  test.each(largest)('1,000 of them for %s on one connection hold next to nothing', async path => {
    const before = await heldMemory(api)
    const cut = await cutBy(api, 'pipelined')
    await attack(api, path, { connections: 1, requests: 1_000 })
    expect((await heldMemory(api)) - before).toBeLessThan(8 * MiB)
    await until('it is cut', async () => (await cutBy(api, 'pipelined')) === cut + 1)
  })

  test.each(largest)('40 for %s on each of 40 connections hold next to nothing', async path => {
    const before = await heldMemory(api)
    await attack(api, path, { connections: 40, requests: 40 })
    expect((await heldMemory(api)) - before).toBeLessThan(24 * MiB)
  })

  test.each(largest)('8 for %s on each of 100 connections are answered with the same bytes', async path => {
    const before = await heldMemory(api)
    await attack(api, path, { connections: 100, requests: 8 })
    expect((await heldMemory(api)) - before).toBeLessThan(16 * MiB)
    expect((await fetch(`${api.url}/healthz`)).status).toBe(200)
  })
})

test('a client that sends its requests at once and reads is answered', async () => {
  const requests = Array.from({ length: 8 }, () => rawRequest('GET /openapi.json', { headers: { connection: '' } }))
  const { replies } = await sendRaw(platform.url, [Buffer.concat(requests)], { replies: 8 })
  expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(200))
})

describe('a connection', () => {
  const path = '/docs/static/swagger-ui-bundle.js'
  /** More than any kernel keeps for a socket. */
  const requests = 8

  test('whose client reads nothing of its responses is cut, and one that is slow is not', async () => {
    const api = await platform.startApi({ env: { MAX_VIEWER_STALL_MS: '5000' } })
    const slow = readSlowly(api, path, requests)
    const unread = await attack(api, path, { connections: 3, requests })
    await until('the unread ones are cut', async () => (await cutBy(api, 'unread')) === 3)
    for (const socket of unread) socket.resume()
    await until('their clients notice', () => unread.every(socket => socket.destroyed))
    expect(await slow).toBeGreaterThan(requests * 1_500_000)
    expect(await cutBy(api, 'unread')).toBe(3)
  })

  test('that is kept for later and not used is closed after a while', async () => {
    const request = rawRequest('GET /healthz', { headers: { connection: '' } })
    const { replies, isClosed } = await sendRaw(platform.url, [request], { untilClosed: true })
    expect([replies.map(({ status }) => status), isClosed]).toEqual([[200], true])
    expect(await cutBy(platform.apis[0] as ApiProcess, 'unread')).toBe(0)
  })

  test('that waits for a database is not cut', async () => {
    const proxy = await startProxy(platform.databaseUrl)
    onTestFinished(() => proxy.close())
    const api = await platform.startApi({ env: { MAX_VIEWER_STALL_MS: '1000', DATABASE_URL: proxy.url } })
    proxy.blackhole()
    expect((await fetch(`${api.url}/v1/tasks`)).status).toBe(503)
    proxy.up()
    await api.kill('SIGTERM')
  })
})

test('a connection beyond MAX_CONNECTIONS is closed at once; when others are gone there is room again', async () => {
  const api = await platform.startApi({ env: { MAX_STREAMS: '4', MAX_CONNECTIONS: '5' } })
  const held: Socket[] = []
  await until('there is no room', async () => {
    const socket = open(api)
    held.push(socket)
    return isClosedAtOnce(socket)
  })
  expect(held.length).toBeLessThanOrEqual(6)
  for (const socket of held) socket.destroy()
  await until('there is room', async () => (await fetch(`${api.url}/healthz`).catch(() => null))?.ok)
  expect(await cutBy(api, 'too_many')).toBeGreaterThan(0)
})

/** Sends them all in one write, reads the beginning of the first answer if there is one, and then nothing more. */
async function attack(
  api: ApiProcess,
  path: string,
  { connections, requests }: { connections: number; requests: number },
): Promise<Socket[]> {
  const bytes = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(requests)
  const sockets = Array.from({ length: connections }, () => open(api))
  for (const socket of sockets) socket.write(bytes)
  await Promise.all(sockets.map(untilReplied))
  return sockets
}

function untilReplied(socket: Socket): Promise<void> {
  return new Promise(resolve => {
    socket.once('close', () => resolve())
    socket.once('data', () => {
      socket.pause()
      resolve()
    })
  })
}

/** Half a megabyte at a time, with a rest after each. How many bytes came until the API closed the connection. */
async function readSlowly(api: ApiProcess, path: string, requests: number): Promise<number> {
  const socket = open(api)
  let received = 0
  let since = 0
  socket.on('data', chunk => {
    received += chunk.length
    since += chunk.length
    if (since < 512 * 1024) return
    since = 0
    socket.pause()
    setTimeout(() => socket.resume(), 150)
  })
  const ask = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n`
  socket.write(`${`${ask}\r\n`.repeat(requests - 1)}${ask}connection: close\r\n\r\n`)
  await new Promise(resolve => socket.once('close', resolve))
  return received
}

function isClosedAtOnce(socket: Socket): Promise<boolean> {
  socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
  return new Promise(resolve => {
    socket.once('data', () => resolve(false))
    socket.once('close', () => resolve(true))
  })
}

function cutBy(api: ApiProcess, reason: string): Promise<number> {
  return metric(api.url, 'rivulet_connections_cut_total', { reason })
}

function open(api: ApiProcess): Socket {
  const { hostname, port } = new URL(api.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}
