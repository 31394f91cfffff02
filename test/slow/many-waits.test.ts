/** Ten thousand turns that wait, or WAITING_TURNS: what they hold, and what happens when many are answered at once. Prints its figures. */
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const turns = Number(process.env.WAITING_TURNS ?? 10_000)
const answered = Math.min(500, turns)
const maxBytes = 5_000

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: { LOG_RETENTION_MS: '5000', RATE_LIMIT_PER_SECOND: '100000' } })
})
afterAll(() => platform.close())

test(`${turns} turns that wait hold no worker and no log, and ${answered} of them are answered at once`, {
  timeout: 1_500_000,
}, async () => {
  const { client, pg, redis } = platform
  let running = 0
  let resumed = 0
  const agent = defineAgent('patient', async turn => {
    running += 1
    turn.signal.addEventListener('abort', () => (running -= 1))
    await turn.send('Shall I?')
    const { action } = await turn.ask('go', { title: 'Refund 42 €?', detail: 'For order A-7', assignee: 'finance', hold: 0 })
    resumed += 1
    await turn.send(action)
    running -= 1
  })
  await startOwnWorker(platform, [agent], { concurrency: 32 })
  const before = await size()
  const startedAt = performance.now()
  const tasks: string[] = []
  while (tasks.length < turns) {
    const some = await Promise.all(Array.from({ length: 50 }, () => client.createTask({ agent: 'patient', input: 'Order A-7 is broken' })))
    tasks.push(...some.map(({ task }) => task.id))
  }
  await until('all of them wait', async () => (await parked()) === turns, { timeoutMs: 900_000, intervalMs: 1_000 })
  const parkedMs = performance.now() - startedAt
  expect(running).toBe(0)
  const { rows: held } = await pg.query('select from turns where worker is not null or lease_until is not null')
  expect(held).toEqual([])
  await until('no log is left', async () => (await logs()) === 0, { timeoutMs: 120_000, intervalMs: 1_000 })
  await pg.query('vacuum full')
  const bytes = ((await size()) - before) / turns

  const answeredAt = performance.now()
  const { rows: open } = await pg.query<{ id: string; task: string }>("select id, task from waits where status = 'open' limit $1", [
    answered,
  ])
  // As a client does: a 503 is retried, and the same answer again changes nothing.
  await Promise.all(
    open.map(({ id, task }) =>
      until(`${id} is answered`, async () => {
        const { status } = await client.post(`/v1/tasks/${task}/waits/${id}/answer`, { action: 'accept' })
        expect([200, 503]).toContain(status)
        return status === 200
      }),
    ),
  )
  const answerMs = performance.now() - answeredAt
  await until('all of them have ended', async () => (await ended()) === answered, { timeoutMs: 300_000, intervalMs: 200 })
  const resumedMs = performance.now() - answeredAt
  expect(resumed).toBe(answered)
  const { rows: said } = await pg.query(
    "select count(*)::int, count(distinct task)::int as tasks from messages where content->>'text' = 'accept'",
  )
  expect(said).toEqual([{ count: answered, tasks: answered }])
  console.log(
    `${turns} turns parked in ${seconds(parkedMs)}; ${Math.round(bytes)} bytes each in Postgres; no worker, no lease, no log in Redis; ` +
      `${answered} answered at once in ${seconds(answerMs)}, all completed after ${seconds(resumedMs)}, each once`,
  )
  expect(bytes).toBeLessThan(maxBytes)

  async function parked(): Promise<number> {
    return (await pg.query("select count(*)::int from turns where status = 'waiting'")).rows[0].count
  }

  async function ended(): Promise<number> {
    return (await pg.query("select count(*)::int from turns where status = 'completed'")).rows[0].count
  }

  async function logs(): Promise<number> {
    const left = await Promise.all(tasks.slice(0, 2_000).map(task => redis.exists(platform.keys.stream(task), platform.keys.state(task))))
    return left.reduce((sum, count) => sum + count, 0)
  }

  /** Of all tables, with their indexes. */
  async function size(): Promise<number> {
    const { rows } = await pg.query(
      "select sum(pg_total_relation_size(oid))::float8 as bytes from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
    )
    return rows[0].bytes
  }
})

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
