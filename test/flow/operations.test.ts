/** What an operator asks of an API process: is it alive, is it ready, what has it done, and what does it offer. */
import { createWorkerMetrics } from '@rivulet/agents/metrics'
import { createMetrics } from '@rivulet/api/metrics'
import { createLogWriter } from '@rivulet/broker'
import type { Claim, ClaimResult } from '@rivulet/contract/internal'
import { headLimits, type Task } from '@rivulet/protocol'
import { newTraceparent, traceIdOf } from '@rivulet/runtime/trace'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { keepHold } from '../support/keep-hold.ts'
import { type ModelServer, startModelServer } from '../support/platform/model-server.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, ErrorReply } from '../support/platform/platform-client.ts'
import type { LogLine } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'
import { startProxy } from '../support/viewers/proxy.ts'
import { rawRequest, sendRaw } from '../support/viewers/raw-http.ts'
import { watch } from '../support/viewers/viewer.ts'

/** What must not be in any log: text of people, keys and tokens. */
const secrets = { input: 'text-of-a-person', key: 'rvk_of_a_caller', token: 'rvt_of_a_viewer', model: 'sk-of-the-model' }

let platform: Platform
let model: ModelServer
let workerUrl: string

beforeAll(async () => {
  model = await startModelServer({ delayMs: 300 })
  const port = await freePort()
  workerUrl = `http://127.0.0.1:${port}`
  platform = await startPlatform({
    env: {
      ...shortLease,
      LOG_LEVEL: 'trace',
      WEBHOOK_ALLOW_PRIVATE: 'on',
      WORKER_METRICS_PORT: port,
      ...{ OPENAI_BASE_URL: model.url, OPENAI_API_KEY: secrets.model },
      NODE_OPTIONS: `--import ${import.meta.resolve('../support/process/span-journal.mjs')}`,
    },
  })
  await ask('hello', { worker: 'played', agents: [{ name: 'played', description: '' }] })
})
afterAll(async () => {
  await platform.close()
  await model.close()
})

describe('readiness', () => {
  test('an API that waits for its database is alive but not ready, and needs no restart when it comes', async () => {
    const proxy = await startProxy(platform.databaseUrl)
    onTestFinished(() => proxy.close())
    proxy.down()
    const api = await platform.startApi({ env: { DATABASE_URL: proxy.url }, untilReady: false })
    const client = platform.clientOf(api)
    expect(await client.get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } })
    for (const path of ['/readyz', '/v1/tasks', '/v1/agents']) {
      const { status, body, headers } = await client.get<ErrorReply>(path)
      expect([path, status, body.error.code]).toEqual([path, 503, 'dependency_unavailable'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect((await client.post('/internal/hello', { worker: 'w', agents: [] })).status).toBe(503)
    proxy.up()
    await until('it is ready', async () => (await client.get('/readyz')).status === 200)
    expect((await client.get('/v1/tasks')).status).toBe(200)
    await api.kill('SIGTERM')
  })

  test('an API whose Redis or Postgres goes away says which, and comes back', async () => {
    const redis = await startProxy(inject('redisUrl'))
    const postgres = await startProxy(platform.databaseUrl)
    onTestFinished(() => Promise.all([redis.close(), postgres.close()]).then(() => {}))
    const api = await platform.startApi({ env: { REDIS_URL: redis.url, DATABASE_URL: postgres.url } })
    const client = platform.clientOf(api)
    for (const [name, proxy] of [
      ['Redis', redis],
      ['Postgres', postgres],
    ] as const) {
      proxy.down()
      await until(`${name} is missed`, async () => {
        const { status, body } = await client.get<ErrorReply>('/readyz')
        return status === 503 && body.error.message.includes(name)
      })
      expect((await client.get('/healthz')).status).toBe(200)
      proxy.up()
      await until(`${name} is back`, async () => (await client.get('/readyz')).status === 200)
    }
    await api.kill('SIGTERM')
  })

  test('without Postgres a task is rejected with 503, and nothing of it is kept; metrics are served without the values from Postgres', async () => {
    const postgres = await startProxy(platform.databaseUrl)
    onTestFinished(() => postgres.close())
    const api = await platform.startApi({ env: { DATABASE_URL: postgres.url } })
    const client = platform.clientOf(api)
    expect(await scrape(api.url)).toContain('rivulet_workers{agent="echo"}')
    postgres.down()
    const refused = await client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: secrets.input, metadata: { refused: true } })
    expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    const told = await until('its figures are gone', async () => {
      const text = await scrape(api.url)
      return !text.includes('rivulet_workers{') && text
    })
    expect(told).toMatch(/^rivulet_viewers 0$/m)
    postgres.up()
    await until('it responds again', async () => (await client.get('/v1/tasks')).status === 200)
    expect((await client.get<{ data: unknown[] }>('/v1/tasks?metadata.refused=true')).body.data).toEqual([])
    await api.kill('SIGTERM')
  })
})

describe('metrics', () => {
  test('have the format of Prometheus', async () => {
    const { status, headers, body } = await platform.client.get<string>('/metrics')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^text\/plain/)
    expect(body).toMatch(/^process_cpu_seconds_total /m)
    expect((await fetch(`${workerUrl}/metrics`)).headers.get('content-type')).toMatch(/^text\/plain/)
    expect((await fetch(`${workerUrl}/healthz`)).status).toBe(404)
  })

  /** Counted elsewhere, because it takes half a minute. */
  const countedElsewhere = [
    ...[
      'rivulet_children_spawned_total',
      'rivulet_tokens_total',
      'rivulet_turns_blocking_total',
      'rivulet_leases_taken_back_total',
      'rivulet_turns_parked_total',
      'rivulet_turns_joined_total',
    ],
    'rivulet_viewers_cut_total',
    'rivulet_limit_rejections_total',
  ]

  test('every counter and every histogram moves when what it counts happens', async () => {
    await Promise.all([speakAndFail(), loseAndReopen(), died(), refuse(), reportAndUpload()])
    const declared = [createMetrics().registry, createWorkerMetrics(1).registry].flatMap(registry => registry.getMetricsAsArray())
    const counted = declared.flatMap(({ name, type }) => (name.startsWith('rivulet_') && String(type) !== 'gauge' ? [name] : []))
    expect(counted.length).toBeGreaterThan(20)
    const after = await until('everything is counted', async () => {
      const now = await scrapeAll()
      return counted.every(name => countedElsewhere.includes(name) || totalOf(now, name) > 0) && now
    }).catch(scrapeAll)
    expect(counted.filter(name => totalOf(after, name) === 0)).toEqual(countedElsewhere)
    expect(after.get('rivulet_turns_finished_total{status="completed",agent="echo"}')).toBeGreaterThan(0)
    expect(after.get('rivulet_http_requests_total{method="GET",route="/v1/tasks/:id/events",status="200"}')).toBeGreaterThan(0)
    for (const code of ['unknown_agent', 'bad_url']) expect(after.get(`rivulet_http_errors_total{code="${code}"}`)).toBe(1)
    expect(after.get('rivulet_agent_call_errors_total{agent="assistant",call="tool",name="calculate"}')).toBe(1)
  })

  test('every gauge tells how it is now', async () => {
    const gauges = new Map<string, (value: number) => boolean>([
      ['rivulet_turns_queued{agent="played"}', value => value === 1],
      ['rivulet_oldest_queued_turn_seconds{agent="played"}', value => value > 0],
      ['rivulet_turns_running{agent="played"}', value => value === 1],
      ['rivulet_workers{agent="played"}', value => value === 1],
      ['rivulet_version_workers{version="0.2.0"}', value => value > 0],
      ['rivulet_version_turns{version="0.2.0"}', value => value > 0],
      ['rivulet_waits_open{agent="clerk",kind="form"}', value => value === 1],
      ['rivulet_oldest_open_wait_seconds{agent="clerk",kind="form"}', value => value > 0],
      ['rivulet_turn_waits', value => value === 1],
      ['rivulet_file_transfers', value => value === 1],
      ['rivulet_viewers', value => value === 1],
      ['rivulet_viewers_blocked', value => value === 1],
      ['rivulet_viewer_unsent_bytes', value => value > 0],
      ['rivulet_feed_held_seconds', value => value >= 0],
      ['rivulet_redis_memory_ratio', value => value > 0 && value < 0.1],
      ['rivulet_postgres_connections{pool="server",state="idle"}', value => value > 0],
      ['rivulet_worker_turns_running', value => value === 1],
      ['rivulet_worker_concurrency', value => value === 20],
    ])
    const declared = [createMetrics().registry, createWorkerMetrics(1).registry].flatMap(registry => registry.getMetricsAsArray())
    const known = declared.flatMap(({ name, type }) => (name.startsWith('rivulet_') && String(type) === 'gauge' ? [name] : []))
    // Needs a flood of one key beside another: fairness.test.ts has one, and looks at it.
    const elsewhere = ['rivulet_slots_kept_free']
    expect([...gauges.keys(), ...elsewhere].map(series => series.replace(/\{.*/, ''))).toEqual(expect.arrayContaining(known))

    await platform.redis.config('SET', 'maxmemory', '100gb')
    onTestFinished(async () => void (await platform.redis.config('SET', 'maxmemory', '0')))
    const waiting = await platform.client.createTask({ agent: 'played' })
    const resting = await platform.client.createTask({ agent: 'scripted', params: { steps: [{ sleep: 60_000 }] } })
    await ask('hello', { worker: 'played', agents: [{ name: 'played', description: '' }] })
    const asking = await platform.client.createTask({ agent: 'clerk' })
    const leaving = holdRequests(resting.task.id)
    const { task, claim } = await claimed()
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('it has joined', ({ frames }) => frames().length > 0)
    viewer.pause()
    const much = Array.from({ length: 40 }, () => 'x'.repeat(60_000))
    for (const first of [1, 41, 81, 121]) await append(claim, much, { first })
    await until('every gauge is there', async () => {
      await ask('hello', { worker: 'played', agents: [{ name: 'played', description: '' }] })
      await ask('heartbeat', { worker: 'played', turns: [{ turnId: claim.turn.id, epoch: claim.epoch, claimId: claim.claimId }] })
      const now = await scrapeAll()
      return [...gauges].every(([series, isRight]) => isRight(now.get(series) ?? Number.NaN))
    })
    leaving.abort()
    await platform.client.cancel(asking.task.id)
    viewer.resume()
    await viewer.until('it has caught up', ({ frames }) => frames().some(({ data }) => data.type === 'snapshot' && data.reason === 'slow'))
    expect(await logged(task, 'sent a snapshot to viewers', { reason: 'slow' })).toMatchObject({ turn: 1, viewers: 1 })
    await viewer.stop()
    for (const { id } of [task, waiting.task, resting.task]) await platform.client.cancel(id)
  })
})

describe('a trace', () => {
  test('joins the request, the queue, the attempt, and the calls of model and tool', async () => {
    const traceparent = newTraceparent()
    const traceId = traceIdOf(traceparent)
    const asked = model.requests.length
    const { task } = await createWith({ traceparent }, { agent: 'assistant', input: '1 + 1' })
    await platform.client.waitForEnd(task.id)
    const found = await until('all spans have ended', () => {
      const spans = spansOf(traceId)
      return spans.length === 6 && spans
    })
    const nameOf = (span: unknown) => found.find(({ spanId }) => spanId === span)?.name
    const edges = found.map(({ name, parent }) => `${parent === traceparent.split('-')[2] ? 'caller' : nameOf(parent)} > ${name}`)
    expect(edges.sort()).toEqual([
      'POST /v1/tasks > enqueue assistant',
      'POST /v1/tasks > turn assistant',
      'caller > POST /v1/tasks',
      'turn assistant > chat gpt-4.1-mini',
      'turn assistant > chat gpt-4.1-mini',
      'turn assistant > execute_tool calculate',
    ])
    const told = model.requests.slice(asked).map(request => request.traceparent?.split('-')[2])
    expect(told.map(nameOf)).toEqual(['chat gpt-4.1-mini', 'chat gpt-4.1-mini'])
    for (const line of ['turn accepted', 'turn sent to the queue', 'turn claimed', 'turn started', 'attempt ended', 'turn ended'])
      expect(await logged(task, line)).toMatchObject({ turn: 1, traceId })
  })

  test('begins at the API where the caller sends none or an invalid one; the next turn has its own', async () => {
    const { task } = await createWith({ traceparent: '00-ABC-1-01' }, { agent: 'echo', input: 'a' })
    await platform.client.waitForEnd(task.id)
    await platform.client.addTurn(task.id, { input: 'b' })
    await platform.client.waitForEnd(task.id)
    const ids = await Promise.all([1, 2].map(async turnNumber => (await logged(task, 'turn ended', { turn: turnNumber })).traceId))
    expect(new Set(ids).size).toBe(2)
    for (const id of ids)
      await until('a span without a parent has ended', () => spansOf(String(id)).some(({ parent }) => parent === undefined))
  })
})

describe('the logs show why a task took long', () => {
  test('when it waited for a worker', async () => {
    const { task, turn } = await platform.client.createTask({ agent: 'played', input: 'go' })
    // As if it had been queued an hour ago: longer than it runs on any machine.
    await platform.pg.query("update turns set queued_at = queued_at - interval '1 hour' where id = $1", [turn.id])
    const claim = await claimTurn(turn.id)
    expect(await finish(claim, { status: 'completed' })).toEqual({ result: 'committed' })
    const { waitedMs, ranMs, agent, status } = await logged(task, 'turn ended')
    expect([agent, status]).toEqual(['played', 'completed'])
    expect(waitedMs).toBeGreaterThanOrEqual(3_600_000)
    expect(ranMs).toBeLessThan(Number(waitedMs))
  })

  test('when its model was slow', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'assistant', input: '2 + 2' })
    const { ranMs, modelMs, toolMs = 0, firstDeltaMs } = await logged(task, 'attempt ended')
    expect(modelMs).toBeGreaterThanOrEqual(600)
    expect(ranMs).toBeGreaterThanOrEqual(Number(modelMs))
    expect(toolMs).toBeLessThan(Number(modelMs))
    expect(firstDeltaMs).toBeGreaterThanOrEqual(300)
    expect(await logged(task, 'call ended', { call: 'model' })).toMatchObject({ name: 'gpt-4.1-mini', isError: false })
  })

  test('when its worker died, and when an attempt failed', async () => {
    const task = await died()
    expect(await logged(task, 'the worker of a turn died')).toMatchObject({ attempt: 1, deaths: 1 })
    expect(await logged(task, 'attempt failed; the turn will be retried')).toMatchObject({ attempt: 2, error: { message: 'once' } })
    expect(await logged(task, 'turn ended')).toMatchObject({ attempt: 3, deaths: 1, failures: 1 })
  })
})

test('no text of people, key or token is in a log', async () => {
  const { task } = await createWith(
    { authorization: `Bearer ${secrets.key}` },
    { agent: 'echo', input: secrets.input, name: secrets.input },
  )
  await platform.client.waitForEnd(task.id)
  await platform.client.cancel(task.id, secrets.input)
  for (const path of [`/v1/tasks/${task.id}/events?token=${secrets.token}`, `/nowhere?token=${secrets.token}&a=${secrets.input}`])
    await platform.client.send('GET', path, { headers: { authorization: `Bearer ${secrets.key}` } })
  for (const body of [
    `{"agent": "${secrets.input}`,
    { agent: 'echo', [secrets.input]: 1 },
    { agent: 'echo', params: secrets.input, input: 5 },
  ])
    await platform.client.post('/v1/tasks', body)
  const { task: asked } = await platform.client.finishedTask({ agent: 'assistant', input: secrets.input })
  await logged(asked, 'attempt ended')
  await logged(task, 'turn ended')
  const written = [...platform.apis, ...platform.workers].flatMap(({ lines }) => lines.map(line => JSON.stringify(line)))
  expect(written.length).toBeGreaterThan(100)
  for (const secret of Object.values(secrets)) expect(written.filter(line => line.includes(secret))).toEqual([])
})

describe('the description of the API', () => {
  type Operation = { responses?: object; parameters?: { name: string; in: string }[]; requestBody?: object }
  type Document = { openapi: string; info: { title: string; version: string }; paths: Record<string, Record<string, Operation>> }

  test('names every route', async () => {
    const { paths } = await description()
    const offered = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
    )
    expect(offered).toEqual(
      expect.arrayContaining([
        'POST /v1/tasks',
        'GET /v1/tasks',
        'GET /v1/tasks/{id}',
        'DELETE /v1/tasks/{id}',
        'POST /v1/tasks/{id}/turns',
        'GET /v1/tasks/{id}/turns/{number}',
        'POST /v1/tasks/{id}/cancel',
        'GET /v1/tasks/{id}/messages',
        'GET /v1/tasks/{id}/events',
        'GET /v1/agents',
        'GET /healthz',
        'GET /readyz',
        'GET /metrics',
      ]),
    )
  })

  test('is OpenAPI 3.1 that can be followed: every reference leads somewhere, every path parameter is declared', async () => {
    const document = await description()
    expect(document.openapi).toMatch(/^3\.1\./)
    expect(document.info).toMatchObject({ title: 'Rivulet', version: expect.any(String) })
    for (const [path, methods] of Object.entries(document.paths)) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      for (const operation of Object.values(methods)) {
        expect(Object.keys(operation.responses ?? {})).not.toEqual([])
        const declared = (operation.parameters ?? []).filter(parameter => parameter.in === 'path').map(({ name }) => name)
        expect([path, ...declared]).toEqual([path, ...named])
      }
    }
    for (const reference of referencesIn(document)) expect([reference, lookUp(document, reference)]).toEqual([reference, expect.anything()])
  })

  test('says what a task may be made of', async () => {
    const { paths } = await description()
    const body = JSON.stringify(paths['/v1/tasks']?.post?.requestBody)
    for (const field of ['agent', 'input', 'params', 'metadata', 'name', 'priority', 'delayMs', 'timeoutMs', 'maxAttempts'])
      expect(body).toContain(`"${field}"`)
  })

  test('has a page', async () => {
    const { status, headers, body } = await platform.client.get<string>('/docs/')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^text\/html/)
    expect(body).toMatch(/swagger/i)
  })

  async function description(): Promise<Document> {
    const { status, body } = await platform.client.get<Document>('/openapi.json')
    expect(status).toBe(200)
    return body
  }
})

function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : []
  return [...own, ...Object.values(value).flatMap(referencesIn)]
}

function lookUp(document: object, reference: string): unknown {
  const steps = reference.replace(/^#\//, '').split('/')
  return steps.reduce<unknown>((value, step) => {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
  }, document)
}

/** Two tasks that speak before a viewer: one that ends well, and one whose tool fails. */
async function speakAndFail(): Promise<void> {
  const { task } = await platform.client.createTask({ agent: 'echo', input: 'count me' })
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.ended
  await platform.client.finishedTask({ agent: 'assistant', input: 'no sum' })
  const spoken = await claimed()
  const listening = watch(spoken.task.id, { urls: [platform.url] })
  await listening.until('it has joined', ({ frames }) => frames().length > 0)
  await append(spoken.claim, ['heard at once'])
  await listening.until('it is heard', ({ frames }) => frames().some(({ data }) => data.type === 'custom'))
  await append(spoken.claim, ['a word'], { first: 2, json: () => 'no event' })
  await finish(spoken.claim, { status: 'completed' }, { n: 2, digest: 'another' })
  await listening.stop()
}

async function loseAndReopen(): Promise<void> {
  const { task, claim, claimId } = await claimed()
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('it has joined', ({ frames }) => frames().length > 0)
  await platform.redis.del(platform.keys.stream(task.id), platform.keys.state(task.id))
  await ask('reopen', { turnId: claim.turn.id, epoch: claim.epoch, claimId })
  await platform.client.cancel(task.id)
  await viewer.stop()
  await finish(claim, { status: 'completed' })
}

let dead: Promise<Task> | undefined

/** A turn whose worker dies, whose next attempt fails and whose last one ends well. It takes seconds: once for all tests. */
function died(): Promise<Task> {
  dead ??= dieAndRetry()
  return dead
}

async function dieAndRetry(): Promise<Task> {
  const { task, claim } = await claimed({ isRenewed: false })
  await logged(task, 'reconciler repaired', { kind: 'lease' })
  const failed = { status: 'failed', error: { code: 'agent_error', message: 'once' } }
  expect(await finish(await claimTurn(claim.turn.id), failed)).toEqual({ result: 'retrying' })
  expect(await finish(await claimTurn(claim.turn.id), { status: 'completed' })).toEqual({ result: 'committed' })
  return task
}

async function refuse(): Promise<void> {
  const kept = rawRequest('GET /healthz', { headers: { connection: '' } })
  await sendRaw(platform.url, [Buffer.concat(Array<Buffer>(headLimits.requestsUnderWay + 1).fill(kept))], { untilClosed: true })
  expect((await platform.client.post('/v1/tasks', { agent: 'unknown' })).status).toBe(422)
  expect((await platform.client.get('/v1/tasks/%zz')).status).toBe(400)
}

/** A request that waits for the end of a turn, and an upload that does not end, until the signal aborts. */
function holdRequests(task: string): AbortController {
  const leaving = new AbortController()
  const { signal } = leaving
  const body = new ReadableStream({ start: controller => controller.enqueue(new TextEncoder().encode('the first bytes')) })
  const upload = { method: 'POST', headers: { 'content-type': 'text/plain' }, body, duplex: 'half', signal } as const
  for (const request of [fetch(`${platform.url}/v1/tasks/${task}/turns/1?wait=60s`, { signal }), fetch(`${platform.url}/v1/files`, upload)])
    request.catch(() => {})
  return leaving
}

/** A webhook whose address is this API, which rejects it, and a file. */
async function reportAndUpload(): Promise<void> {
  const webhook = { url: `${platform.url}/none`, events: ['task.created'] }
  expect((await platform.client.post('/v1/webhooks', webhook)).status).toBe(201)
  await platform.client.createTask({ agent: 'echo', input: 'report me' })
  const upload = await fetch(`${platform.url}/v1/files`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'a file' })
  expect(upload.status).toBe(201)
}

/** A turn that the test runs. */
async function claimed({ isRenewed = true } = {}): Promise<{ task: Task; claim: HeldClaim; claimId: string }> {
  const { task, turn } = await platform.client.createTask({ agent: 'played', input: 'go' })
  const claimId = crypto.randomUUID()
  const claim = await claimTurn(turn.id, claimId)
  if (isRenewed) keepHold(platform, 'played', holdingOf(claim))
  return { task, claim, claimId }
}

/** Once it may be claimed: a turn that failed waits a little. */
function claimTurn(turnId: string, claimId: string = crypto.randomUUID()): Promise<HeldClaim> {
  return until('the turn is ours', async () => {
    const claim = await ask<ClaimResult>('claim', { worker: 'played', turnId, claimId })
    return claim.result === 'claimed' && { ...claim, claimId }
  })
}

type HeldClaim = Claim & { claimId: string }

const holdingOf = ({ turn, epoch, claimId }: HeldClaim) => ({ turnId: turn.id, epoch, claimId })

function finish(claim: HeldClaim, outcome: object, { n = 0, digest = '' } = {}): Promise<unknown> {
  return ask('finish', { ...holdingOf(claim), outcome, n, digest })
}

/** Notices of the turn's agent, as its worker would write them. */
async function append({ task, turn, attempt, epoch }: Claim, notices: string[], { first = 1, json = JSON.stringify } = {}): Promise<void> {
  const writer = createLogWriter({ redis: platform.redis, keys: platform.keys, maxBytes: 100_000_000 })
  const said = { type: 'custom', task: task.id, turn: turn.number, attempt, at: Date.now(), name: 'notice' }
  const entries = notices.map(data => ({ index: null, json: json({ ...said, data }) }))
  expect(await writer.append([{ task: task.id, epoch, first, entries }])).toEqual(['ok'])
}

async function ask<T = unknown>(call: string, body: object): Promise<T> {
  return (await platform.client.post<T>(`/internal/${call}`, body)).body
}

async function createWith(headers: Record<string, string>, body: object): Promise<Accepted> {
  return (await platform.client.post<Accepted>('/v1/tasks', body, headers)).body
}

/** The first line about a task that says this: a line takes a moment longer than an answer. */
function logged(task: Task, message: string, fields: object = {}): Promise<LogLine> {
  const wanted = Object.entries({ msg: message, task: task.id, ...fields })
  const lines = () => [...platform.apis, ...platform.workers].flatMap(process => process.lines)
  return until(`"${message}" is logged`, () => lines().find(line => wanted.every(([name, value]) => line[name] === value)))
}

function spansOf(traceId: string): LogLine[] {
  const lines = [...platform.apis, ...platform.workers].flatMap(process => process.lines)
  return lines.filter(({ msg, traceId: of }) => msg === 'span' && of === traceId)
}

async function scrape(url: string): Promise<string> {
  return (await fetch(`${url}/metrics`)).text()
}

/** Every series of the API and of its worker. */
async function scrapeAll(): Promise<Map<string, number>> {
  const text = (await Promise.all([platform.url, workerUrl].map(scrape))).join('\n')
  const series = text.split('\n').filter(line => line.startsWith('rivulet_'))
  return new Map(series.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

/** The number of observations of a histogram. */
function totalOf(scraped: Map<string, number>, name: string): number {
  const ours = [...scraped].filter(([series]) => [name, `${name}_count`].includes(series.replace(/\{.*/, '')))
  return ours.reduce((sum, [, value]) => sum + value, 0)
}
