/** Processes start in any order: each waits for the others, without a restart. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'

let platform: Platform
let redis: FaultyProxy
let postgres: FaultyProxy

beforeAll(async () => {
  platform = await startPlatform({ apis: 0, workers: 0 })
  redis = await startProxy(inject('redisUrl'))
  postgres = await startProxy(platform.databaseUrl)
})
afterAll(async () => {
  await platform.close()
  await Promise.all([redis.close(), postgres.close()])
})

test('a worker first, then an API, then Postgres, then Redis', async () => {
  redis.down()
  postgres.down()
  const port = await freePort()
  const isWorking = platform.startWorker({ RIVULET_URL: `http://127.0.0.1:${port}`, REDIS_URL: redis.url })
  await until('the worker waits', () => platform.workers[0]?.lines.some(({ msg }) => msg === 'the server does not respond yet; retrying'))
  const api = await platform.startApi({ port, env: { REDIS_URL: redis.url, DATABASE_URL: postgres.url }, untilReady: false })
  const client = platform.clientOf(api)
  expect((await client.get('/healthz')).status).toBe(200)
  const early = await client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: 'x' })
  expect([early.status, early.body.error.code, early.headers.get('retry-after') !== null]).toEqual([503, 'dependency_unavailable', true])

  postgres.up()
  // Agents are known by Postgres alone, and so a task can be accepted.
  await until('a task is accepted', async () => (await client.post('/v1/tasks', { agent: 'echo', input: 'x' })).status === 201)
  expect((await client.get('/readyz')).status).toBe(503)
  const { body: accepted } = await client.get<{ data: { id: string }[] }>('/v1/tasks')
  const events = await client.get<ErrorReply>(`/v1/tasks/${accepted.data[0]?.id}/events`)
  expect([events.status, events.body.error.code]).toEqual([503, 'dependency_unavailable'])
  redis.up()
  await isWorking
  await until('it is ready', async () => (await client.get('/readyz')).status === 200)
  const { body } = await client.get<{ data: { id: string }[] }>('/v1/tasks')
  for (const { id } of body.data) {
    expect((await client.waitForEnd(id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await faultsOf({ client, log: platform.log }, id)).toEqual([])
  }
  expect(body.data.length).toBeGreaterThan(0)
})
