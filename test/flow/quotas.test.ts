/** Quotas of a tenant on two APIs: whatever creates a turn, and however many requests come together, the tenant never has more than it may. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform
const mostTurns = 5
const most = 4
const mostBytes = 5_000

beforeAll(async () => {
  const fileBytes = { MAX_FILE_BYTES_PER_TENANT: `${mostBytes}` }
  const quotas = {
    ...fileBytes,
    MAX_TURNS_PER_TENANT: `${mostTurns}`,
    MAX_WEBHOOKS_PER_TENANT: `${most}`,
    MAX_SCHEDULES_PER_TENANT: `${most}`,
  }
  platform = await startPlatform({ apis: 2, env: { ...quotas, WEBHOOK_ALLOW_PRIVATE: 'on' } })
})
afterAll(() => platform.close())
afterEach(async () => {
  await cancelAll()
  // Each API reads the number of a tenant's turns once a second, and has its own.
  for (const [i, url] of platform.urls.entries())
    await until(`API ${i} has room for the tenant`, async () => (await post('/v1/tasks', later, url)).status === 201)
  await cancelAll()
})

const later = { agent: 'echo', input: 'x', delayMs: 3_600_000 }
const yearly = { agent: 'echo', input: 'x', cron: '0 0 1 1 *', timezone: 'UTC' }

type Reply = { status: number; code: string | undefined; id: string }

/** To the APIs in turn. */
let sent = 0
async function post(path: string, body: object, url?: string): Promise<Reply> {
  sent += 1
  const response = await fetch(`${url ?? platform.urls[sent % 2]}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { error, task, schedule } = (await response.json()) as Record<string, { code?: string; id?: string } | undefined>
  return { status: response.status, code: error?.code, id: task?.id ?? schedule?.id ?? '' }
}

async function unfinished(): Promise<number> {
  const { rows } = await platform.pg.query(
    "select count(*)::int as count from turns where status in ('queued', 'running', 'waiting') and not canceling",
  )
  return rows[0].count
}

async function cancelAll(): Promise<void> {
  const { rows } = await platform.pg.query("select id from tasks where status in ('queued', 'running', 'waiting')")
  for (const { id } of rows) await post(`/v1/tasks/${id}/cancel`, {})
  await until('no turn is left', async () => (await unfinished()) === 0)
}

test('tasks that are created together are as many as the tenant may have', async () => {
  const replies = await Promise.all(Array.from({ length: 20 }, () => post('/v1/tasks', later)))
  expect(replies.filter(({ status }) => status === 201).length).toBe(mostTurns)
  expect(new Set(replies.map(({ code }) => code))).toEqual(new Set([undefined, 'quota_exceeded']))
  expect(await unfinished()).toBe(mostTurns)
})

test.each([
  ['webhooks', { url: 'http://127.0.0.1:9/', events: ['turn.finished'] }],
  ['schedules', yearly],
])('%s that are created together are as many as the tenant may have', async (kind, body) => {
  const replies = await Promise.all(Array.from({ length: 20 }, () => post(`/v1/${kind}`, body)))
  expect(replies.filter(({ status }) => status === 201).length).toBe(most)
  expect(new Set(replies.map(({ code }) => code))).toEqual(new Set([undefined, 'quota_exceeded']))
  await platform.pg.query(`delete from ${kind}`)
})

test('no way to create a turn exceeds the quota, and an interrupt takes the place of the turn that it cancels', async () => {
  const ended = await post('/v1/tasks', { agent: 'echo', input: 'x' })
  const schedule = await post('/v1/schedules', { ...yearly, overlap: 'queue' })
  await until('it has ended', async () => (await unfinished()) === 0)
  const running = await post('/v1/tasks', { agent: 'scripted', params: { steps: [{ sleep: 600_000 }] } })
  await until('it runs', async () => (await platform.pg.query("select from turns where status = 'running'")).rowCount === 1)
  const waiting = await post('/v1/tasks', later)
  for (let i = 2; i < mostTurns; i += 1) await post('/v1/tasks', later)

  const ways: [path: string, body: object][] = [
    ['/v1/tasks', later],
    ['/v1/tasks', { ...later, name: 'named' }],
    [`/v1/tasks/${ended.id}/turns`, { input: 'x' }],
    [`/v1/tasks/${waiting.id}/turns`, { input: 'x', ifBusy: 'interrupt' }],
    [`/v1/tasks/${ended.id}/fork`, { input: 'x' }],
    [`/v1/tasks/${ended.id}/retry`, {}],
    ['/openai/v1/responses', { model: 'echo', input: 'x', background: true }],
  ]
  for (const [path, body] of ways) expect([path, (await post(path, body)).status]).toEqual([path, 429])
  await post(`/v1/schedules/${schedule.id}/trigger`, {})
  await platform.pg.query('update schedules set next_at = now() where id = $1', [schedule.id])
  const runs = await until('the schedule ran twice', async () => {
    const { rows } = await platform.pg.query('select skip_reason, error from schedule_runs where schedule = $1', [schedule.id])
    return rows.length === 2 && rows
  })
  const rejected = { skip_reason: 'rejected', error: expect.objectContaining({ code: 'quota_exceeded' }) }
  expect(runs).toEqual([rejected, rejected])
  expect(await unfinished()).toBe(mostTurns)

  const interrupts = await Promise.all(
    Array.from({ length: 6 }, () => post(`/v1/tasks/${running.id}/turns`, { input: 'instead', ifBusy: 'interrupt' })),
  )
  expect(interrupts.filter(({ status }) => status === 202).length).toBeGreaterThan(0)
  expect(await unfinished()).toBeLessThanOrEqual(mostTurns)
})

test('every way to upload a file obeys the quota, and rejects a file only for its size if it is repeated under its key', async () => {
  await platform.client.createTask({ agent: 'scripted', input: 'x', params: { steps: [{ sleep: 600_000 }] } })
  const turn = await until('a worker holds the turn', async () => {
    const { rows } = await platform.pg.query("select id, claim from turns where status = 'running' and not canceling")
    return rows[0] as { id: string; claim: string } | undefined
  })
  const held = { 'x-turn-id': turn.id, 'x-claim-id': turn.claim }
  const send = async (path: string, headers: Record<string, string>, size: number) => {
    const response = await fetch(`${platform.url}${path}`, { method: 'POST', headers, body: 'x'.repeat(size) })
    const { file, error } = (await response.json()) as { file?: { id: string }; error?: { code: string } }
    return { result: error?.code ?? response.status, id: file?.id }
  }
  const keyed = { 'idempotency-key': 'the-only-file' }
  const first = await send('/v1/files', keyed, mostBytes - 1)
  expect(first.result).toBe(201)
  const ways: [path: string, headers: Record<string, string>][] = [
    ['/v1/files', {}],
    ['/v1/files', { 'idempotency-key': 'another-file' }],
    ['/internal/files', held],
    ['/worker/v1/files', held],
    ['/worker/v1/files', { ...held, 'idempotency-key': 'another-file' }],
  ]
  for (const [path, headers] of ways) expect([path, (await send(path, headers, 2)).result]).toEqual([path, 'quota_exceeded'])
  expect(await send('/v1/files', keyed, mostBytes - 1)).toEqual(first)
  await fetch(`${platform.url}/v1/files/${first.id}`, { method: 'DELETE' })
  for (const path of ['/internal/files', '/worker/v1/files']) expect([path, (await send(path, held, 2)).result]).toEqual([path, 200])
  await cancelAll()
  await platform.pg.query('delete from tasks')
  await platform.pg.query('delete from files')
})

test('a report of usage has the sum of files while the files themselves are locked', async () => {
  const blocker = await platform.pg.connect()
  try {
    await blocker.query('begin')
    await blocker.query('lock table files in access exclusive mode')
    expect((await platform.client.get<object>('/v1/usage')).body).toMatchObject({ files: { bytes: expect.any(Number) } })
  } finally {
    await blocker.query('rollback')
    blocker.release()
  }
})

test('files that are uploaded together take no more than the tenant may have, and a removed one makes room', async () => {
  const upload = async (i: number) => {
    const response = await fetch(`${platform.urls[i % 2]}/v1/files`, { method: 'POST', body: 'x'.repeat(1_000) })
    const { file, error } = (await response.json()) as { file?: { id: string }; error?: { code: string; message: string } }
    return { status: response.status, id: file?.id, error }
  }
  const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => upload(i)))
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(5)
  for (const { status, error } of replies)
    if (status !== 201)
      expect([status, error]).toMatchObject([
        429,
        { code: 'quota_exceeded', message: expect.stringContaining('MAX_FILE_BYTES_PER_TENANT') },
      ])
  const usage = await platform.client.get<{ files: object }>('/v1/usage')
  expect(usage.body.files).toEqual({ count: 5, bytes: 5_000, maxBytes: mostBytes })
  const id = replies.find(({ status }) => status === 201)?.id
  expect((await fetch(`${platform.url}/v1/files/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect([(await upload(0)).status, (await upload(1)).status]).toEqual([201, 429])
})
