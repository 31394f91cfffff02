/** What an agent announces: the schema of its params, which refuses others at the POST, and defaults for its tasks. */
import type { Json } from '@rivulet/protocol'
import { defineAgent, type Turn } from '@rivulet/worker'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'

const seen: unknown[] = []

const weather = defineAgent({
  name: 'weather',
  description: 'Tells the weather',
  params: z.object({ city: z.string().min(2), days: z.number().int().max(7).default(3) }),
  maxAttempts: 1,
  timeoutMs: 60_000,
  run: async turn => {
    seen.push(turn.params)
    await turn.send(`${turn.params.city} ${turn.params.days}`)
  },
})

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
beforeEach(async () => {
  await startOwnWorker(platform, [weather])
})
afterAll(() => platform.close())

test('the list of agents shows description, schema and defaults, with the fields in their order', async () => {
  const { body } = await platform.client.get<{ data: unknown[] }>('/v1/agents')
  expect(body.data).toContainEqual({
    name: 'weather',
    description: 'Tells the weather',
    params: {
      type: 'object',
      properties: { city: { type: 'string', minLength: 2 }, days: expect.objectContaining({ type: 'integer', maximum: 7, default: 3 }) },
      required: ['city'],
      additionalProperties: false,
    },
    timeoutMs: 60_000,
    maxAttempts: 1,
    paused: false,
    workers: expect.any(Number),
    queued: 0,
    running: 0,
  })
  expect(JSON.stringify(body)).toMatch(/"city".*"days"/)
})

test('a task with good params runs with them and its defaults', async () => {
  const { task } = await platform.client.finishedTask({ agent: 'weather', params: { city: 'Oslo' } })
  expect(seen.at(-1)).toEqual({ city: 'Oslo', days: 3 })
  const { rows } = await platform.pg.query('select max_attempts, timeout_ms, params from tasks where id = $1', [task.id])
  expect(rows).toMatchObject([{ max_attempts: 1, timeout_ms: expect.anything(), params: { city: 'Oslo' } }])
  expect(Number(rows[0].timeout_ms)).toBe(60_000)
  const own = await platform.client.createTask({ agent: 'weather', params: { city: 'Oslo' }, maxAttempts: 7, timeoutMs: 5_000 })
  const { rows: given } = await platform.pg.query('select max_attempts from tasks where id = $1', [own.task.id])
  expect(given).toEqual([{ max_attempts: 7 }])
})

test.each<[string, Json | undefined, string]>([
  ['none', undefined, '/params/city'],
  ['null, which is no object', null, '/params/city'],
  ['no object', 'Oslo', '/params'],
  ['a wrong type', { city: 1 }, '/params/city'],
  ['a number that is too large', { city: 'Oslo', days: 8 }, '/params/days'],
  ['a field that the agent does not have', { city: 'Oslo', dayz: 2 }, '/params/dayz'],
])('a task with params that do not match is refused, and stored nowhere: %s', async (_, params, path) => {
  const before = await tasks()
  for (const name of [undefined, 'named']) {
    const body = { agent: 'weather', ...(params !== undefined && { params }), ...(name && { name }) }
    expect(await platform.client.post('/v1/tasks', body)).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_failed', details: [{ path }] } },
    })
  }
  expect(await tasks()).toBe(before)
})

test('an agent whose params are a loose object gets fields that its schema does not have', async () => {
  const params = z.looseObject({ city: z.string() })
  await startOwnWorker(platform, [defineAgent({ name: 'loose', params, run: async turn => void seen.push(turn.params) })])
  await platform.client.finishedTask({ agent: 'loose', params: { city: 'Oslo', more: [1] } })
  expect(seen.at(-1)).toEqual({ city: 'Oslo', more: [1] })
})

test('a field that the schema does not have is refused at any depth, and taken by a loose object there', async () => {
  const place = z.object({ lat: z.number(), lon: z.number() })
  const params = z.object({
    place,
    stops: z.array(place).default([]),
    by: z.discriminatedUnion('kind', [z.object({ kind: z.literal('car'), seats: z.int() }), z.object({ kind: z.literal('foot') })]),
    both: z.intersection(z.object({ a: z.int() }), z.object({ b: z.int() })).optional(),
    extra: z.looseObject({}).default({}),
  })
  await startOwnWorker(platform, [defineAgent({ name: 'nested', params, run: async turn => void seen.push(turn.params) })])
  const good = {
    ...{ place: { lat: 1, lon: 2 }, stops: [{ lat: 3, lon: 4 }], by: { kind: 'car', seats: 4 } },
    ...{ both: { a: 1, b: 2 }, extra: { any: { thing: 1 } } },
  }
  await platform.client.finishedTask({ agent: 'nested', params: good })
  expect(seen.at(-1)).toEqual(good)
  for (const [path, wrong] of [
    ['/params/place/alt', { place: { lat: 1, lon: 2, alt: 3 } }],
    ['/params/stops/0/alt', { stops: [{ lat: 1, lon: 2, alt: 3 }] }],
    ['/params/by', { by: { kind: 'foot', seats: 4 } }],
  ] as const) {
    const { status, body } = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'nested', params: { ...good, ...wrong } })
    expect([status, body.error.details?.[0]?.path]).toEqual([400, expect.stringContaining(path)])
  }
})

test("a client of another protocol runs an agent whose params do not have that protocol's fields", async () => {
  const given = { temperature: 0.5, instructions: 'Be short', reasoning: { effort: 'low' } }
  const messages = [{ id: 'a', role: 'user', content: 'hello' }]
  const run = { threadId: 'thread', runId: 'run', tools: [], messages, context: [{ description: 'page', value: '1' }] }
  const requests: [string, object][] = [
    ['/openai/v1/responses', { ...given, model: 'weather', input: 'hello', params: { city: 'Oslo' } }],
    ['/openai/v1/chat/completions', { ...given, model: 'weather', messages, params: { city: 'Bergen' } }],
    ['/ag-ui/weather', { ...run, state: {}, forwardedProps: { city: 'Tromso', page: 1 } }],
  ]
  for (const [path, body] of requests) expect([path, (await platform.client.post(path, body)).status]).toEqual([path, 200])
  expect(seen.slice(-3)).toEqual(['Oslo', 'Bergen', 'Tromso'].map(city => ({ city, days: 3 })))
  const effort = z.object({ effort: z.string() })
  const named = z.array(z.object({ name: z.string() }))
  for (const [name, reasoning, tools] of [
    ['thinker', effort, named],
    ['nullish-thinker', effort.nullish(), named.nullish()],
    ['either-thinker', z.union([z.string(), effort]), z.record(z.string(), z.unknown()).or(named)],
  ] as const) {
    const params = z.object({ reasoning, tools })
    await startOwnWorker(platform, [defineAgent({ name, params, run: async turn => void seen.push(turn.params) })])
    const given = { reasoning: { effort: 'low', summary: 'auto' }, tools: [{ type: 'function', name: 'look', parameters: {} }] }
    const { status, body } = await platform.client.post('/openai/v1/responses', { model: name, input: 'hello', ...given })
    expect([name, status], JSON.stringify(body)).toEqual([name, 200])
    expect(seen.at(-1)).toEqual({ reasoning: { effort: 'low' }, tools: [{ name: 'look' }] })
  }
  const wrong = { model: 'weather', input: 'hello', params: { city: 'Oslo', dayz: 2 } }
  expect(await platform.client.post('/openai/v1/responses', wrong)).toMatchObject({ status: 400 })
})

test('params of another turn, and of a fork, are checked too', async () => {
  const { task } = await platform.client.finishedTask({ agent: 'weather', params: { city: 'Oslo' } })
  const wrong = { input: 'again', params: { city: 'Oslo', days: 9 } }
  for (const route of ['turns', 'fork'])
    expect(await platform.client.post(`/v1/tasks/${task.id}/${route}`, wrong)).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_failed', details: [{ path: '/params/days' }] } },
    })
  expect(await platform.client.post(`/v1/tasks/${task.id}/turns`, { input: 'again' })).toMatchObject({ status: 202 })
})

test('a turn whose params no longer fit a new version of its agent fails, once, and says why', async () => {
  const strict = defineAgent({ name: 'strict', params: z.object({}), run: async () => {} })
  const first = await startOwnWorker(platform, [strict])
  await first.stop()
  const { task } = await platform.client.createTask({ agent: 'strict' })
  const changed = defineAgent({ name: 'strict', params: z.object({ city: z.string() }), run: async (_: Turn<{ city: string }>) => {} })
  const second = await startOwnWorker(platform, [changed])
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'validation_failed' } }])
  await second.stop()
})

test.each([
  ['a reference', { type: 'object', properties: { a: { $ref: '#' } } }],
  ['no object', { type: 'string' }],
  ['too long', { type: 'object', description: 'x'.repeat(17_000) }],
])('a schema that the API will not check with is refused when a worker announces it: %s', async (_, params) => {
  const hello = { worker: 'test', agents: [{ name: 'odd', description: '', params }] }
  expect(await platform.client.post('/internal/hello', hello)).toMatchObject({
    status: 400,
    body: { error: { code: 'validation_failed' } },
  })
})

async function tasks(): Promise<number> {
  const { rows } = await platform.pg.query('select count(*)::int as count from tasks')
  return rows[0].count
}
