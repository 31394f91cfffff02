/** A Redis that is nearly full, and one that may evict: new work is refused before anything is lost, and no process starts on the wrong one. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { freePort } from '../support/free-port.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { startProcess } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'

let redis: PrivateRedis
let platform: Platform

beforeAll(async () => {
  redis = await startPrivateRedis()
  platform = await startPlatform({ env: { REDIS_URL: redis.url } })
})
afterAll(async () => {
  await platform.close()
  await redis.close()
})

test('nearly full: new work is refused and asked to come back, what runs goes on, and so does everything else', async () => {
  const { client } = platform
  const { task } = await client.createTask(scripted([repeat(40, say(0, 'word '), rest(50))], { input: 'go' }))
  await client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
  const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1])
  await redis.client.config('SET', 'maxmemory', String(Math.floor(used * 1.15)))
  const refused = await until('a task is refused', async () => {
    const reply = await client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: 'x' })
    return reply.status === 503 && reply
  })
  expect(refused.body.error).toMatchObject({ code: 'overloaded', message: expect.stringContaining('MAX_REDIS_MEMORY_PERCENT') })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  const input = await client.post<ErrorReply>(`/v1/tasks/${task.id}/turns`, { input: 'more' })
  expect([input.status, input.body.error.code]).toEqual([503, 'overloaded'])
  expect((await client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  const [, said] = await client.messages(task.id)
  expect(said).toMatchObject({ status: 'complete', content: { text: 'word '.repeat(40) } })
  expect((await client.cancel(task.id)).status).toBe('completed')
  expect((await client.remove(task.id)).status).toBe(204)

  await redis.client.config('SET', 'maxmemory', '0')
  const accepted = await until('a task is accepted', async () => {
    const reply = await client.post<{ task: { id: string } }>('/v1/tasks', { agent: 'echo', input: 'x' })
    return reply.status === 201 && reply.body.task.id
  })
  expect((await client.waitForEnd(accepted)).task.status).toBe('completed')
})

test('may evict: an API and a worker end with 1 and say what to set; those that run are not sent requests', async () => {
  await redis.client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  const shared = { REDIS_URL: redis.url, REDIS_PREFIX: 'evicting', RIVULET_URL: platform.url, RIVULET_EXAMPLE_AGENTS: 'on' }
  const api = startProcess('api', 'refused api', { ...shared, DATABASE_URL: platform.databaseUrl, PORT: await freePort() })
  const worker = startProcess('worker', 'refused worker', shared)
  for (const process of [api, worker]) {
    expect(await process.exited).toEqual({ code: 1, signal: null })
    expect(process.lines.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/set its maxmemory-policy to noeviction/))
  }
  expect(worker.lines.map(({ msg }) => msg)).not.toContain('worker is ready')
  const { status, body } = await platform.client.get<ErrorReply>('/readyz')
  expect([status, body.error.message]).toEqual([503, expect.stringContaining('noeviction')])
  await redis.client.config('SET', 'maxmemory-policy', 'noeviction')
  expect((await platform.client.get('/readyz')).status).toBe(200)
})
