/** Postgres unavailable, frozen and restarting: callers get 503, running turns continue, and no turn runs twice. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { type ApiProcess, type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, Client, ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'
import { watch } from '../support/viewers/viewer.ts'

/** The only API, and so the only reconciler: no other process reaches Postgres. */
let api: ApiProcess
let client: Client
let platform: Platform
let postgres: FaultyProxy

const outageMs = 3 * Number(shortLease.LEASE_MS)

beforeAll(async () => {
  platform = await startPlatform({ apis: 0, workers: 0, env: shortLease })
  postgres = await startProxy(platform.databaseUrl)
  api = await platform.startApi({ env: { DATABASE_URL: postgres.url } })
  client = platform.clientOf(api)
  await platform.startWorker()
})
afterAll(async () => {
  await platform.close()
  await postgres.close()
})

test('Postgres is unavailable for many leases while turns end: callers hear 503, viewers hear the words, and nothing is run again', async () => {
  const { task } = await client.createTask(scripted([repeat(30, say(0, '.'), rest(100)), say(0, 'end')], { input: 'go' }))
  const viewer = watch(task.id, { urls: [api.url] })
  await viewer.until('a few words', ({ text }) => text().length > 3)
  postgres.down()
  const outage = performance.now()
  const refused = await client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: 'now' })
  expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await client.get('/healthz')).status).toBe(200)
  expect((await client.get('/readyz')).status).toBe(503)
  await viewer.until('all words', ({ text }) => text().endsWith('end'))
  await until('the outage outlasts leases', () => performance.now() - outage > outageMs)
  expect(viewer.frames().some(({ data }) => data.type === 'turn.finished')).toBe(false)
  postgres.up()
  await viewer.ended
  expect((await client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(await metric(api.url, 'rivulet_worker_deaths_total')).toBe(0)
  expect([
    ...(await faultsOf({ client, log: platform.log }, task.id)),
    ...(await faultsOfViewers({ ...platform, client }, [viewer])),
  ]).toEqual([])
  expect((await client.finishedTask({ agent: 'echo', input: 'again' })).task.status).toBe('completed')
})

test('a Postgres that does not answer: a request fails within seconds, and everything goes on afterwards', async () => {
  const { task } = await client.createTask(scripted([repeat(80, say(0, '.'), rest(100))], { input: 'go' }))
  const viewer = watch(task.id, { urls: [api.url] })
  await viewer.until('a few words', ({ text }) => text().length > 3)
  postgres.blackhole()
  const asked = performance.now()
  const refused = await client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: 'now' })
  expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
  expect(performance.now() - asked).toBeLessThan(15_000)
  postgres.up()
  await viewer.ended
  expect((await client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect([
    ...(await faultsOf({ client, log: platform.log }, task.id)),
    ...(await faultsOfViewers({ ...platform, client }, [viewer])),
  ]).toEqual([])
})

test('connections that Postgres closes are opened again', async () => {
  await platform.pg.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  await until('a task is taken again', async () => (await client.post('/v1/tasks', { agent: 'echo', input: 'on' })).status === 201)
  expect(api.hasExited()).toBe(false)
})

test('connections that break under a question: reads and requests under a key are asked once more, others get 503, and none gets 500', async () => {
  const { task } = await client.finishedTask({ agent: 'echo', input: 'before' })
  const broken = postgres.dropReply('message_page')
  expect((await client.get(`/v1/tasks/${task.id}/messages`)).status).toBe(200)
  await broken

  const keyed = postgres.dropReply('accept_tasks')
  const key = { 'idempotency-key': randomUUID() }
  const first = await client.post<Accepted>('/v1/tasks', { agent: 'echo', input: 'once' }, key)
  await keyed
  const again = await client.post<Accepted>('/v1/tasks', { agent: 'echo', input: 'once' }, key)
  expect([first.status, again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 201, 'true'])
  expect(again.body).toEqual(first.body)

  const unkeyed = postgres.dropReply('accept_tasks')
  const refused = await client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: 'unsure' })
  await unkeyed
  expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('connections that break again and again under load: no caller gets 500', async () => {
  const statuses = new Set<number>()
  let isOver = false
  const post = async () => {
    while (!isOver) statuses.add((await client.post('/v1/tasks', { agent: 'echo', input: 'on', delayMs: 3_600_000 })).status)
  }
  const posting = Promise.all(Array.from({ length: 20 }, post))
  for (let i = 0; i < 40; i += 1) {
    postgres.down()
    postgres.up()
    await until('a request succeeds again', async () => (await client.get('/v1/agents')).status === 200)
  }
  isOver = true
  await posting
  expect([...statuses].filter(status => status !== 201 && status !== 503)).toEqual([])
})

test('a commit that was not answered: the worker asks again, and hears that it is done', async () => {
  const dropped = postgres.dropOnReply('COMMIT', 'finish_turn')
  const { task, turns } = await client.finishedTask({ agent: 'echo', params: {}, input: 'once' })
  await dropped
  expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(await faultsOf({ client, log: platform.log }, task.id)).toEqual([])
})

test('Postgres away while the worker dies too: the turn is tried again', async () => {
  const attempts = { 1: [repeat(4, say(0, '.')), rest(600_000)], 2: [repeat(4, say(0, '.')), say(0, 'end')] }
  const { task } = await client.createTask({ agent: 'scripted', input: 'go', params: { attempts } })
  const viewer = watch(task.id, { urls: [api.url] })
  await viewer.until('a few words', ({ text }) => text().length > 3)
  postgres.down()
  await platform.workers.at(-1)?.kill()
  postgres.up()
  await platform.startWorker({ RIVULET_URL: api.url })
  await viewer.ended
  expect((await client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  expect([
    ...(await faultsOf({ client, log: platform.log }, task.id)),
    ...(await faultsOfViewers({ ...platform, client }, [viewer])),
  ]).toEqual([])
})
