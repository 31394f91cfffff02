/**
 * One tenant floods searches, files, webhooks or workers' calls, or all of them. The requests of another tenant all succeed, and their p99 is at most
 * twice what it is beside as many requests a second of well-behaved tenants: the load comes from the machine that serves it, so its cost is in both
 * figures. Rounds alternate, and the median of their ratios counts, because other programs run on the machine. Prints its figures.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type RivuletClient } from '@rivulet/client'
import type { Scope } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const rounds = 3
const requestsOfRound = 100
/** Requests that are faster than this are fast enough: a pause of the garbage collector is not the neighbour. */
const floorMs = 50
const kinds = ['searches', 'uploads', 'downloads', 'webhooks', 'claims'] as const
type Kind = (typeof kinds)[number]

/** How many requests at a time, and how often each of them is followed by the next, unless it is still under way. */
type Load = { lanes: number; periodMs: number; send: (lane: number, i: number, signal: AbortSignal) => Promise<unknown> }

let platform: Platform
let keyring: TestKeyring
let loads: Record<Kind, Load>
let quiet: RivuletClient
let quietTask: string
const ordinary: { secret: string; task: string }[] = []
const receivers: ReturnType<typeof createServer>[] = []

beforeAll(async () => {
  const keys = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper }
  platform = await startPlatform({ env: { ...keys, WEBHOOK_ALLOW_PRIVATE: 'on' } })
  keyring = openTestKeyring(platform.databaseUrl)
  const secret = await secretOf('quiet', ['tasks:read', 'tasks:write'])
  quiet = createClient({ url: platform.url, key: secret })
  quietTask = await finishedTask(secret)
  for (let i = 0; i < 8; i += 1) {
    const own = await secretOf(`ordinary-${i}`, ['tasks:read', 'tasks:write'])
    ordinary.push({ secret: own, task: await finishedTask(own) })
  }
  loads = await prepareLoads()
  await round()
})
afterAll(async () => {
  for (const receiver of receivers) {
    receiver.closeAllConnections()
    receiver.close()
  }
  await keyring.close()
  await platform.close()
})

/** Downloads alone are no flood of requests but of bytes, which as many requests without them are no measure for. */
test.each(['searches', 'uploads', 'webhooks', 'claims', 'everything'] as const)(
  'the requests of a tenant take at most twice as long while another tenant floods %s',
  { timeout: 600_000 },
  async flood => {
    const flooded = flood === 'everything' ? kinds : [flood]
    const ratios: number[] = []
    for (let i = 0; i < rounds; i += 1) {
      const noisy = await underLoad(flooded.map(kind => loads[kind]))
      const calm = await underLoad([wellBehaved(noisy.perSecond)])
      ratios.push(Math.max(noisy.p99, floorMs) / Math.max(calm.p99, floorMs))
      const figures = ({ p99, perSecond }: Figures) => `${p99.toFixed(1)} ms beside ${perSecond.toFixed(1)} requests a second`
      console.info(`${flood}: p99 ${figures(noisy)} of the flood, ${figures(calm)} of ordinary tenants`)
      expect(noisy.perSecond).toBeGreaterThan(0)
    }
    expect(ratios.sort((a, b) => a - b)[Math.floor(rounds / 2)]).toBeLessThanOrEqual(2)
  },
)

/** So many requests a second of tenants that read their tasks. */
function wellBehaved(perSecond: number): Load {
  const lanes = 3 * ordinary.length
  return {
    ...{ lanes, periodMs: (lanes * 1_000) / perSecond },
    send: (lane, _, signal) => {
      const { secret, task } = ordinary[lane % ordinary.length] ?? { secret: '', task: '' }
      return call(`/v1/tasks/${task}`, secret, { signal })
    },
  }
}

type Figures = { p99: number; perSecond: number }

async function underLoad(wanted: readonly Load[]): Promise<Figures> {
  const stopping = new AbortController()
  const since = performance.now()
  let sent = 0
  const lanes = wanted.flatMap(load => Array.from({ length: load.lanes }, (_, lane) => keepSending(load, lane)))
  try {
    const p99 = await round()
    return { p99, perSecond: (sent * 1_000) / (performance.now() - since) }
  } finally {
    stopping.abort()
    await Promise.all(lanes)
  }

  async function keepSending({ lanes: count, periodMs, send }: Load, lane: number): Promise<void> {
    // Spread over the period, because requests that all come at one moment wait for each other.
    await pause((periodMs * lane) / count)
    for (let i = lane; !stopping.signal.aborted; i += 1) {
      sent += 1
      const request = send(lane, i, stopping.signal).then(readAll, () => {})
      await Promise.all([request, pause(periodMs)])
    }
  }

  function pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: stopping.signal }).catch(() => {})
  }
}

/** The 99th percentile of requests one after the other. Each of them has to succeed: the client throws where it may not retry. */
async function round(): Promise<number> {
  const requests = [
    () => quiet.tasks.get(quietTask).detail(),
    () => quiet.tasks.list({ limit: 10 }),
    () => quiet.tasks.get(quietTask).messages(),
    () => quiet.tasks.create({ agent: 'echo', input: 'x', delayMs: 3_600_000 }),
  ]
  const times: number[] = []
  for (let i = 0; i < requestsOfRound; i += 1) {
    const since = performance.now()
    await requests[i % requests.length]?.()
    times.push(performance.now() - since)
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99) - 1] ?? 0
}

/** The floods of one tenant with eight keys. */
async function prepareLoads(): Promise<Record<Kind, Load>> {
  const secrets = await Promise.all(Array.from({ length: 8 }, () => secretOf('noisy', ['tasks:read', 'tasks:write'])))
  const worker = await secretOf('noisy', ['worker'])
  const secretAt = (lane: number) => secrets[lane % secrets.length] ?? ''
  const metadata = { text: 'lorem ipsum '.repeat(15_000) }
  for (let i = 0; i < 70; i += 1)
    expect((await post('/v1/tasks', secretAt(i), { agent: 'echo', input: 'x', metadata, delayMs: 3_600_000 })).status).toBe(201)
  const uploaded = await call('/v1/files', secretAt(0), { method: 'POST', body: randomBytes(1_000_000) })
  const { file } = (await uploaded.json()) as { file: { id: string } }
  const hanging = await Promise.all(Array.from({ length: 20 }, hang))
  return {
    searches: {
      ...{ lanes: 80, periodMs: 200 },
      send: (lane, _, signal) =>
        call(lane % 2 === 0 ? '/v1/tasks?q=nowhere' : '/v1/tasks?metadata.text=nowhere', secretAt(lane), { signal }),
    },
    uploads: { lanes: 60, periodMs: 500, send: (lane, _, signal) => slowUpload(secretAt(lane), signal) },
    downloads: { lanes: 4, periodMs: 200, send: (lane, _, signal) => call(`/v1/files/${file.id}`, secretAt(lane), { signal }) },
    webhooks: {
      ...{ lanes: 4, periodMs: 200 },
      send: (lane, i, signal) =>
        post('/v1/tasks', secretAt(lane), { agent: 'echo', input: 'x', onEnd: hanging[i % hanging.length] }, signal),
    },
    claims: {
      ...{ lanes: 4, periodMs: 50 },
      send: (_lane, _i, signal) => post('/internal/claim', worker, { worker: 'noisy', turnId: randomUUID(), claimId: 'c' }, signal),
    },
  }
}

function call(path: string, secret: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${platform.url}${path}`, { ...init, headers: { authorization: `Bearer ${secret}`, ...init.headers } })
}

function post(path: string, secret: string, body: object, signal: AbortSignal | null = null): Promise<Response> {
  return call(path, secret, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal })
}

/** Keeps its place: 64 KiB a second, until the round ends or the API rejects it. */
function slowUpload(secret: string, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const upload = request(`${platform.url}/v1/files`, { method: 'POST', headers: { authorization: `Bearer ${secret}` }, signal })
    const sending = setInterval(() => upload.write(Buffer.alloc(32 * 1_024)), 500)
    upload.on('response', response => response.resume())
    upload.on('error', () => {})
    upload.on('close', () => {
      clearInterval(sending)
      resolve()
    })
    upload.flushHeaders()
  })
}

async function readAll(response: unknown): Promise<void> {
  if (response instanceof Response) await response.arrayBuffer().catch(() => null)
}

async function finishedTask(secret: string): Promise<string> {
  const task = await createClient({ url: platform.url, key: secret }).tasks.create({ agent: 'echo', input: 'x' })
  await task.result()
  return task.id
}

async function secretOf(tenant: string, scopes: Scope[]): Promise<string> {
  return (await keyring.create({ tenant, scopes })).key
}

/** A receiver that never responds. */
async function hang(): Promise<string> {
  const server = createServer(() => {})
  receivers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
