/** An API process as its operator meets it: what it refuses to start on, when it takes no more work, and what it keeps no longer. */
import { createKeys } from '@rivulet/broker'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../test/support/engines/database.ts'
import { type PrivateRedis, startPrivateRedis } from '../../../test/support/engines/redis/private-redis.ts'
import { type Accepted, createClient, type ErrorReply } from '../../../test/support/platform/platform-client.ts'
import { until } from '../../../test/support/until.ts'
import { startProxy } from '../../../test/support/viewers/proxy.ts'
import { startApi } from './api.ts'
import { readConfig } from './config.ts'
import { openDatabase } from './store/connection/database.ts'

const idle = { agent: 'idle', input: 'x' }

let redis: PrivateRedis
let databaseUrl: string

beforeAll(async () => {
  redis = await startPrivateRedis()
})
afterAll(() => redis.close())
beforeEach(async () => {
  databaseUrl = (await createTestDatabase()).url
})

describe('starting', () => {
  test('before Redis does not end the process; it checks Redis when Redis responds', async () => {
    const proxy = await startProxy(redis.url)
    onTestFinished(() => proxy.close())
    proxy.down()
    await redis.client.config('SET', 'maxmemory-policy', 'volatile-lru')
    onTestFinished(() => void redis.client.config('SET', 'maxmemory-policy', 'noeviction'))
    const { client, refused } = await start({ REDIS_URL: proxy.url })
    expect((await client.get('/healthz')).status).toBe(200)
    expect((await client.get<ErrorReply>('/readyz')).body.error.message).toMatch(/Redis is unavailable|is starting/)
    proxy.up()
    await expect(refused).rejects.toThrow(/noeviction/)
  })

  test('on a schema that is older is refused where it may not migrate, and migrates where it may', async () => {
    await query('drop schema public cascade', 'create schema public', 'drop schema drizzle cascade')
    const { refused } = await start({ MIGRATE: 'off' })
    await expect(refused).rejects.toThrow(/older than this program \(0000_start, .*\): run `rivulet migrate`, or start with MIGRATE=on/)
    await untilReady((await start({ MIGRATE: 'on' })).client)
  })

  test('on a schema that is newer is refused, unless that is allowed', async () => {
    const year3000 = 32_503_680_000_000
    await query(`insert into drizzle.__drizzle_migrations (hash, created_at) values ('of tomorrow', ${year3000})`)
    const { refused } = await start()
    await expect(refused).rejects.toThrow(/newer than this program: deploy .* ALLOW_NEWER_SCHEMA=on/)
    await untilReady((await start({ ALLOW_NEWER_SCHEMA: 'on' })).client)
  })

  test('on a schema of another program is rejected', async () => {
    await query("update drizzle.__drizzle_migrations set hash = 'of another program' where id = 2")
    const { refused } = await start()
    await expect(refused).rejects.toThrow(/another program than this one: check DATABASE_URL/)
  })
})

describe('too much work', () => {
  test('a queue that is too long: new work is refused until it is shorter; what is not due yet does not count', async () => {
    const { client } = await startWithAgent({ MAX_QUEUED_TURNS: '2' })
    await client.createTask({ ...idle, delayMs: 60_000 })
    const [first] = [await client.createTask(idle), await client.createTask(idle)]
    const rejection = await until('a task is refused', async () => {
      const reply = await client.post<ErrorReply>('/v1/tasks', { ...idle, delayMs: 60_000 })
      return reply.status === 503 && reply
    })
    expect(rejection.body.error).toMatchObject({ code: 'overloaded', message: expect.stringContaining('MAX_QUEUED_TURNS') })
    await client.cancel(first.task.id)
    await until('a task is accepted', async () => (await client.post('/v1/tasks', idle)).status === 201)
  })

  test('a tenant with too many turns: its new work is refused, also by an interrupt, but no repetition; those of another do not count', async () => {
    const { client } = await startWithAgent({ MAX_TURNS_PER_TENANT: '2' })
    await client.createTask({ ...idle, delayMs: 60_000 })
    const key = { 'idempotency-key': 'again' }
    const { body: accepted } = await client.post<Accepted>('/v1/tasks', idle, key)
    const rejection = await until('a task is refused', async () => {
      const reply = await client.post<ErrorReply>('/v1/tasks', idle)
      return reply.status === 429 && reply
    })
    expect(rejection.body.error).toMatchObject({ code: 'quota_exceeded', message: expect.stringContaining('MAX_TURNS_PER_TENANT') })
    const again = await client.post('/v1/tasks', idle, key)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    const interrupt = await client.post(`/v1/tasks/${accepted.task.id}/turns`, { input: 'instead', ifBusy: 'interrupt' })
    expect(interrupt.status).toBe(429)
    await query("update turns set tenant = 'acme'")
    await until('a task is accepted', async () => (await client.post('/v1/tasks', idle)).status === 201)
  })
})

describe('ended tasks', () => {
  test('are removed with all that was kept of them when their time is up, and no others', async () => {
    const { client } = await startWithAgent({ TASK_RETENTION_DAYS: String(5_000 / 86_400_000) })
    const { body } = await client.post<{ task: { id: string } }>('/v1/tasks', idle, { 'idempotency-key': 'once' })
    const ended = body.task.id
    const waiting = await client.createTask(idle)
    const takenUp = await client.createTask(idle)
    for (const id of [ended, takenUp.task.id]) await client.cancel(id)
    await client.addTurn(takenUp.task.id, { input: 'more' })
    expect(await redis.client.exists(...keysOf(ended))).toBe(2)
    const gone = await until('it is removed', async () => {
      const reply = await client.get<ErrorReply>(`/v1/tasks/${ended}`)
      return reply.status === 404 && reply
    })
    expect(gone.body.error.code).toBe('task_not_found')
    const events = await client.get<ErrorReply>(`/v1/tasks/${ended}/events`)
    expect([events.status, events.body.error.code]).toEqual([404, 'task_not_found'])
    await until('its log is gone', async () => (await redis.client.exists(...keysOf(ended))) === 0)
    for (const { task } of [waiting, takenUp]) expect((await client.get(`/v1/tasks/${task.id}`)).status).toBe(200)
    // What was answered under its key holds the input: that is forgotten, too.
    await until('its key is forgotten', async () => {
      const reply = await client.post<{ task: { id: string } }>('/v1/tasks', idle, { 'idempotency-key': 'once' })
      return reply.body.task.id !== ended
    })
  })

  test('stay for ever, unless told otherwise', async () => {
    const { client } = await startWithAgent({ RECONCILE_MS: '20' })
    const { task } = await client.createTask(idle)
    await client.cancel(task.id)
    await query(`update tasks set updated_at = now() - interval '10 years'`)
    const { task: later } = await client.createTask(idle)
    await query(`update turns set started_at = now(), deadline = now() where task = '${later.id}'`)
    await client.waitForEnd(later.id)
    expect((await client.get(`/v1/tasks/${task.id}`)).status).toBe(200)
  })
})

type Client = ReturnType<typeof createClient>

async function start(env: Record<string, string> = {}) {
  const config = readConfig({
    ...{ PORT: '0', REDIS_URL: redis.url, DATABASE_URL: databaseUrl, REDIS_PREFIX: prefix() },
    ...{ LEASE_MS: '20000', RECONCILE_MS: '200', ...env },
  })
  const api = await startApi(config, pino({ level: 'silent' }))
  onTestFinished(() => api.close())
  return { client: createClient(() => api.url), refused: api.refused }
}

/** With an agent that no worker runs. */
async function startWithAgent(env: Record<string, string> = {}): Promise<{ client: Client }> {
  const { client } = await start(env)
  await untilReady(client)
  await client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  return { client }
}

function untilReady(client: Client): Promise<unknown> {
  return until('it is ready', async () => (await client.get('/readyz')).status === 200)
}

async function query(...statements: string[]): Promise<void> {
  const { pool, close } = openDatabase({ url: databaseUrl, onError: () => {} })
  for (const statement of statements) await pool.query(statement)
  await close()
}

function prefix(): string {
  return `p${new URL(databaseUrl).pathname.replace(/\W/g, '-')}`.slice(0, 60)
}

function keysOf(task: string): string[] {
  const keys = createKeys(prefix())
  return [keys.stream(task), keys.state(task)]
}
