/**
 * One tenant floods searches, files, webhooks or workers' calls, or all of them, and the API serves some of each flood. The requests of another tenant all
 * succeed, and their p99 is at most twice what it is beside as many requests a second of well-behaved tenants, as many of them downloads: the load comes
 * from the machine that serves it, so its cost is in both figures. Rounds alternate, and the median of their ratios counts, because other programs run on
 * the machine. Prints its figures.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type RivuletClient } from '@rivulet/client'
import type { Scope } from '@rivulet/contract/scopes'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const rounds = 3
const requestsOfRound = 100
/** Requests that are faster than this are fast enough: a pause of the garbage collector is not the neighbour. */
const floorMs = 50
const kinds = ['searches', 'uploads', 'downloads', 'webhooks', 'claims'] as const
type Kind = (typeof kinds)[number]

/**
 * How many requests at a time, and how often each of them is followed by the next, unless it is still under way. `send` resolves with the status, or with
 * null if the round ended before the response.
 */
type Load = {
  kind: Kind | 'reads'
  lanes: number
  periodMs: number
  send: (lane: number, i: number, signal: AbortSignal) => Promise<number | null>
}

let platform: Platform
let keyring: TestKeyring
let loads: Record<Kind, Load>
let quiet: RivuletClient
let quietTask: string
const ordinary: { secret: string; task: string; file: string }[] = []
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
    ordinary.push({ secret: own, task: await finishedTask(own), file: await uploadedFile(own) })
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

test.each([...kinds, 'everything'] as const)(
  'the requests of a tenant take at most twice as long while another tenant floods %s',
  { timeout: 600_000 },
  async flood => {
    const flooded = flood === 'everything' ? kinds : [flood]
    const ratios: number[] = []
    for (let i = 0; i < rounds; i += 1) {
      const noisy = await underLoad(flooded.map(kind => loads[kind]))
      const calm = await underLoad(wellBehaved(noisy.sent))
      ratios.push(Math.max(noisy.p99, floorMs) / Math.max(calm.p99, floorMs))
      console.info(`${flood}: p99 ${figuresText(noisy)} of the flood, ${figuresText(calm)} of ordinary tenants`)
      // A flood that the API only refuses shows nothing.
      for (const kind of flooded) expect([kind, servedOf(noisy, kind)]).toEqual([kind, expect.toSatisfy(served => served > 0)])
    }
    expect(ratios.sort((a, b) => a - b)[Math.floor(rounds / 2)]).toBeLessThanOrEqual(2)
  },
)

/** As many requests a second of tenants that read their tasks and download their files. */
function wellBehaved(sent: Figures['sent']): Load[] {
  const { downloads = 0, ...others } = sent
  const reads = Object.values(others).reduce((sum, perSecond) => sum + perSecond, 0)
  const lanes = 3 * ordinary.length
  const load = (kind: Load['kind'], perSecond: number, pathOf: (one: (typeof ordinary)[number]) => string): Load[] =>
    perSecond === 0
      ? []
      : [
          {
            ...{ kind, lanes, periodMs: (lanes * 1_000) / perSecond },
            send: (lane, _, signal) => {
              const one = ordinary[lane % ordinary.length] as (typeof ordinary)[number]
              return statusOf(call(pathOf(one), one.secret, { signal }))
            },
          },
        ]
  return [...load('reads', reads, ({ task }) => `/v1/tasks/${task}`), ...load('downloads', downloads, ({ file }) => `/v1/files/${file}`)]
}

/** `sent`: requests a second; `statuses`: how many responses had each status. */
type Figures = { p99: number; sent: Partial<Record<Load['kind'], number>>; statuses: Partial<Record<Load['kind'], Record<string, number>>> }

/** Uploads of the flood never end by themselves: one that keeps its place until the end of the round was served. */
function servedOf({ statuses }: Figures, kind: Kind): number {
  const responses = Object.entries(statuses[kind] ?? {})
  return responses.reduce(
    (sum, [status, count]) => sum + (status.startsWith('2') || (kind === 'uploads' && status === 'open') ? count : 0),
    0,
  )
}

function figuresText({ p99, sent, statuses }: Figures): string {
  const kindsText = Object.entries(sent).map(
    ([kind, perSecond]) => `${perSecond.toFixed(1)} ${kind}/s ${JSON.stringify(statuses[kind as Kind])}`,
  )
  return `${p99.toFixed(1)} ms beside ${kindsText.join(', ')}`
}

async function underLoad(wanted: readonly Load[]): Promise<Figures> {
  const stopping = new AbortController()
  const since = performance.now()
  const counts: Partial<Record<Load['kind'], number>> = {}
  const statuses: Figures['statuses'] = {}
  const lanes = wanted.flatMap(load => Array.from({ length: load.lanes }, (_, lane) => keepSending(load, lane)))
  let p99 = 0
  let seconds = 0
  try {
    p99 = await round()
    seconds = (performance.now() - since) / 1_000
  } finally {
    stopping.abort()
    await Promise.all(lanes)
  }
  const sent = Object.fromEntries(Object.entries(counts).map(([kind, count]) => [kind, count / seconds]))
  return { p99, sent, statuses }

  async function keepSending({ kind, lanes: count, periodMs, send }: Load, lane: number): Promise<void> {
    // Spread over the period, because requests that all come at one moment wait for each other.
    await pause((periodMs * lane) / count)
    for (let i = lane; !stopping.signal.aborted; i += 1) {
      counts[kind] = (counts[kind] ?? 0) + 1
      const request = send(lane, i, stopping.signal).then(status => {
        const name = String(status ?? (stopping.signal.aborted ? 'open' : 'lost'))
        statuses[kind] = { ...statuses[kind], [name]: (statuses[kind]?.[name] ?? 0) + 1 }
      })
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
  const file = await uploadedFile(secretAt(0))
  const hanging = await Promise.all(Array.from({ length: 20 }, hang))
  return {
    searches: {
      ...{ kind: 'searches', lanes: 80, periodMs: 200 },
      send: (lane, _, signal) =>
        statusOf(call(lane % 2 === 0 ? '/v1/tasks?q=nowhere' : '/v1/tasks?metadata.text=nowhere', secretAt(lane), { signal })),
    },
    uploads: { kind: 'uploads', lanes: 60, periodMs: 500, send: (lane, _, signal) => slowUpload(secretAt(lane), signal) },
    downloads: {
      ...{ kind: 'downloads', lanes: 4, periodMs: 200 },
      send: (lane, _, signal) => statusOf(call(`/v1/files/${file}`, secretAt(lane), { signal })),
    },
    webhooks: {
      ...{ kind: 'webhooks', lanes: 4, periodMs: 200 },
      send: (lane, i, signal) =>
        statusOf(post('/v1/tasks', secretAt(lane), { agent: 'echo', input: 'x', onEnd: hanging[i % hanging.length] }, signal)),
    },
    claims: {
      ...{ kind: 'claims', lanes: 4, periodMs: 50 },
      send: (_lane, _i, signal) =>
        statusOf(post('/internal/claim', worker, { worker: 'noisy', turnId: randomUUID(), claimId: 'c' }, signal)),
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
function slowUpload(secret: string, signal: AbortSignal): Promise<number | null> {
  return new Promise(resolve => {
    const upload = request(`${platform.url}/v1/files`, { method: 'POST', headers: { authorization: `Bearer ${secret}` }, signal })
    const sending = setInterval(() => upload.write(Buffer.alloc(32 * 1_024)), 500)
    let status: number | null = null
    upload.on('response', response => {
      status = response.statusCode ?? null
      response.resume()
    })
    upload.on('error', () => {})
    upload.on('close', () => {
      clearInterval(sending)
      resolve(status)
    })
    upload.flushHeaders()
  })
}

/** Once the body is read. */
async function statusOf(responding: Promise<Response>): Promise<number | null> {
  try {
    const response = await responding
    await response.arrayBuffer()
    return response.status
  } catch {
    return null
  }
}

async function uploadedFile(secret: string): Promise<string> {
  const response = await call('/v1/files', secret, { method: 'POST', body: randomBytes(1_000_000) })
  expect(response.status).toBe(201)
  return ((await response.json()) as { file: { id: string } }).file.id
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
