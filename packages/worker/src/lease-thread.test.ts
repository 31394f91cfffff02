/** Heartbeats of the lease thread. The test's server runs in a thread, too, because these tests keep the main thread busy. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Worker as Thread } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { startLeaseThread } from './lease-thread.ts'

const heartbeatMs = 20

test('leases are renewed while the main thread is busy, under the epoch that each turn has now', async () => {
  const server = await startServer()
  const { leases } = open(server.url)
  const [moved, ended] = [randomUUID(), randomUUID()]
  leases.hold({ turnId: moved, epoch: 1, claimId: 'c' }, 'here', () => {}).moveTo(3)
  leases.hold({ turnId: ended, epoch: 2, claimId: 'c' }, 'here', () => {}).drop()
  // Nothing that this thread waits for can happen while it is here.
  while (server.count() < 5);
  const beats = await server.bodies('heartbeat')
  expect(beats.at(-1)).toEqual({ worker: 'w', turns: [{ turnId: moved, epoch: 3, claimId: 'c' }], fenced: 0 })
  expect((await server.bodies('hello')).at(-1)).toEqual({ worker: 'w', agents: [] })
})

test('a turn that the server returns as lost is lost, as of the epoch that the heartbeat named', async () => {
  const server = await startServer()
  const { leases } = open(server.url)
  const turnId = randomUUID()
  const lost: number[] = []
  server.respond({ lost: [turnId] })
  leases.hold({ turnId, epoch: 4, claimId: 'c' }, 'here', epoch => lost.push(epoch))
  await until('it is lost', () => lost.length > 0)
  expect(lost[0]).toBe(4)
})

test('more turns than fit into one body are renewed in pieces', async () => {
  const server = await startServer()
  const { leases } = open(server.url)
  const turns = Array.from({ length: 700 }, () => randomUUID())
  for (const turnId of turns) leases.hold({ turnId, epoch: 1, claimId: 'c' }, 'here', () => {})
  const asked = await until('all have been asked about', async () => {
    const bodies = await server.bodies('heartbeat')
    const named = new Set(bodies.flatMap(body => body.turns.map(({ turnId }) => turnId)))
    return named.size === turns.length && bodies
  })
  // Five items for each, of at least 1,000 that a body may have.
  expect(Math.max(...asked.map(body => body.turns.length))).toBeLessThan(200)
})

test('a beat that fails is retried, and its count of refused writes is reported once', async () => {
  const server = await startServer()
  const { leases, failures } = open(server.url)
  server.respond(null)
  leases.noteFenced()
  await until('it has failed again', () => server.count() > 3)
  expect(failures).toEqual(['not now'])
  server.respond({ lost: [] })
  await until('the server has its report', async () => (await server.replied('heartbeat')).some(body => body.fenced === 1))
  const before = server.count()
  await until('others have followed', () => server.count() > before + 4)
  expect((await server.replied('heartbeat')).reduce((sum, { fenced }) => sum + fenced, 0)).toBe(1)
})

test('failures in a row are reported once, and again after a beat that succeeded', async () => {
  const server = await startServer()
  const { failures } = open(server.url)
  for (const count of [1, 2]) {
    server.respond(null)
    const failed = server.count()
    await until('beats have failed', () => server.count() > failed + 4)
    expect(failures).toHaveLength(count)
    server.respond({ lost: [] })
    const accepted = (await server.replied('hello')).length
    await until('a beat has succeeded', async () => (await server.replied('hello')).length > accepted + 1)
  }
})

test('a beat that one server does not accept goes to another that the worker knows', async () => {
  const [failing, sound] = [await startServer(), await startServer()]
  failing.respond(null)
  const { leases } = open(`${failing.url},${sound.url}`)
  const turnId = randomUUID()
  leases.hold({ turnId, epoch: 1, claimId: 'c' }, 'here', () => {})
  await until('it is renewed', async () => (await sound.bodies('heartbeat')).some(({ turns }) => turns[0]?.turnId === turnId))
})

test('a lease thread that exits by itself rejects `failed`', async () => {
  const leases = startLeaseThread({ ...options('http://127.0.0.1:1'), url: 'no address', onBeatFailed: () => {} })
  await expect(leases.failed).rejects.toThrow(/Invalid URL/)
})

function open(url: string) {
  const failures: string[] = []
  const leases = startLeaseThread({ ...options(url), onBeatFailed: reason => failures.push(reason) })
  onTestFinished(() => leases.stop())
  return { leases, failures }
}

function options(url: string) {
  return { url, key: undefined, worker: 'w', hello: { worker: 'w', agents: [] }, heartbeatMs, watchdogMs: null, onQueues: () => {} }
}

type Body = { turns: { turnId: string }[]; fenced: number }

/** Returns the same body for every call until `respond` changes it; null: 503. `replied` are the bodies of calls that got 200. */
async function startServer() {
  const counter = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Thread(serverCode, { eval: true, workerData: counter })
  onTestFinished(async () => void (await thread.terminate()))
  const [port] = (await once(thread, 'message')) as [number]
  return {
    url: `http://127.0.0.1:${port}`,
    count: () => Atomics.load(counter, 0),
    respond: (given: { lost: string[] } | null) => thread.postMessage({ reply: given }),
    bodies: (call: string) => ask(call, 'bodies'),
    replied: (call: string) => ask(call, 'replied'),
  }

  async function ask(call: string, list: 'bodies' | 'replied'): Promise<Body[]> {
    const heard = once(thread, 'message')
    thread.postMessage({ list })
    const [all] = (await heard) as [{ call: string; body: Body }[]]
    return all.filter(one => one.call === call).map(({ body }) => body)
  }
}

const serverCode = `
const { parentPort, workerData: counter } = require('node:worker_threads')
const { createServer } = require('node:http')
const lists = { bodies: [], replied: [] }
let reply = { lost: [] }
parentPort.on('message', message => (message.list ? parentPort.postMessage(lists[message.list]) : (reply = message.reply)))
const server = createServer(async (request, response) => {
  let text = ''
  for await (const part of request) text += part
  const heard = { call: request.url.split('/').at(-1), body: JSON.parse(text) }
  lists.bodies.push(heard)
  if (reply) lists.replied.push(heard)
  response.writeHead(reply ? 200 : 503).end(JSON.stringify(reply ?? { error: { code: 'dependency_unavailable', message: 'not now' } }))
  Atomics.add(counter, 0, 1)
}).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`
