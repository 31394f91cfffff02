/**
 * Schedules over a day on which clocks change, and with a clock that is set back, at two APIs that are killed and restarted all the time: each time runs
 * exactly once. Postgres' clock decides what is due, so the test has a `now()` of its own in the database and moves it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ownClockOf, type SetClock } from '../../support/engines/postgres-clock.ts'
import { freePort } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform/platform.ts'
import { until } from '../../support/until.ts'
import { type ArmedTree, createArmedTree } from '../armed-tree.ts'

let platform: Platform
let tree: ArmedTree
let urls: string[]
let setClock: SetClock
let isOver = false

beforeAll(async () => {
  tree = createArmedTree()
  platform = await startPlatform({ apis: 0, workers: 0, tree })
  setClock = await ownClockOf(platform.databaseUrl)
  // The first one is killed by its failpoint whenever it has committed a run.
  urls = await Promise.all([supervise({ FAILPOINTS: 'schedule ran=kill' }), supervise({})])
})
afterAll(async () => {
  for (const url of urls) await until(`${url} is ready`, async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok)
  isOver = true
  await platform.close()
  tree.remove()
})

const hour = 3_600_000
/** In Berlin. Every hour of UTC has its run, and `30 2 * * *` has one on each day: at the first minute after the gap, or at the first of two half past twos. */
const days = [
  ['forward', '2027-03-27T22:30:00Z', ['2027-03-28T01:00:00Z', '2027-03-29T00:30:00Z']],
  ['back', '2027-10-30T22:30:00Z', ['2027-10-31T00:30:00Z', '2027-11-01T01:30:00Z']],
] as const

test.each(days)('on the day on which clocks go %s, each time runs once', { timeout: 600_000 }, async (_, from, daily) => {
  await setNow(new Date(from))
  await send('POST', '/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  const schedule = { agent: 'idle', timezone: 'Europe/Berlin', input: 'go', overlap: 'queue' }
  const made = {
    hourly: await send('POST', '/v1/schedules', { ...schedule, cron: '0 * * * *' }),
    daily: await send('POST', '/v1/schedules', { ...schedule, cron: '30 2 * * *' }),
  }
  const last = Date.parse(daily[1])
  await runUntil(last)
  const start = Date.parse(from) + hour / 2
  const hours = Array.from({ length: Math.floor((last - start) / hour) + 1 }, (_, i) => new Date(start + i * hour))
  expect(await runsOf(made.hourly.schedule.id)).toEqual(hours.map(at => at.toISOString()))
  expect(await runsOf(made.daily.schedule.id)).toEqual(daily.map(at => new Date(at).toISOString()))
  expect(platform.apis.filter(api => api.hasExited()).length).toBeGreaterThan(10)
  for (const { schedule: one } of Object.values(made)) await send('DELETE', `/v1/schedules/${one.id}`)
})

test('a schedule that is resumed after the clock was set back runs no time twice', { timeout: 600_000 }, async () => {
  const from = Date.parse('2028-01-10T00:30:00Z')
  await setNow(new Date(from))
  await send('POST', '/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  const metadata = { schedule: 'that is resumed' }
  const { schedule } = await send('POST', '/v1/schedules', { agent: 'idle', cron: '0 * * * *', input: 'go', overlap: 'queue', metadata })
  await runUntil(from + 6 * hour)
  for (let round = 0; round < 3; round += 1) {
    await send('POST', `/v1/schedules/${schedule.id}/pause`)
    await setNow(new Date(from + 1_000))
    await send('POST', `/v1/schedules/${schedule.id}/resume`)
    expect((await nextTime()).getTime()).toBe(from + hour / 2)
    await runUntil(from + (8 + 2 * round) * hour)
  }
  const times = Array.from({ length: 12 }, (_, i) => new Date(from + hour / 2 + i * hour).toISOString())
  expect(await runsOf(schedule.id)).toEqual(times)
  const { rows } = await platform.pg.query('select count(*)::int as created from tasks where metadata @> $1', [metadata])
  expect(rows).toEqual([{ created: times.length }])
})

/** Sets the clock to each next time, up to the last, while the second API is killed now and then. */
async function runUntil(last: number): Promise<void> {
  for (let step = 1; ; step += 1) {
    const next = await nextTime()
    if (next.getTime() > last) return
    await setNow(next)
    if (step % 3 === 0) await platform.apis.findLast(({ url }) => url === urls[1])?.kill('SIGKILL')
    await until('what was due has run', async () => (await nextTime()) > next, { timeoutMs: 60_000 })
  }
}

/** In the order of their times. Each has a task of its own, which no other run has. */
async function runsOf(schedule: string): Promise<string[]> {
  const { rows } = await platform.pg.query<{ at: Date; task: string; skip_reason: string | null }>(
    'select at, task, skip_reason from schedule_runs where schedule = $1 order by at',
    [schedule],
  )
  expect(rows.filter(({ skip_reason }) => skip_reason !== null)).toEqual([])
  expect(new Set(rows.map(({ task }) => task)).size).toBe(rows.length)
  const { rows: found } = await platform.pg.query('select from tasks where id = any($1)', [rows.map(({ task }) => task)])
  expect(found).toHaveLength(rows.length)
  return rows.map(({ at }) => at.toISOString())
}

async function nextTime(): Promise<Date> {
  const { rows } = await platform.pg.query<{ next: Date }>(`select min(next_at) as next from schedules where status = 'active'`)
  return rows[0]?.next ?? new Date(0)
}

/** The processes of this test have the clock of the server. */
function setNow(now: Date): Promise<void> {
  return setClock(now.getTime() - Date.now())
}

/** An API that is started again whenever it dies. */
async function supervise(env: Record<string, string>): Promise<string> {
  const port = await freePort()
  const first = await platform.startApi({ port, env })
  void restart(first.exited)
  return first.url

  async function restart(exited: Promise<unknown>): Promise<void> {
    await exited
    if (isOver) return
    const next = await platform.startApi({ port, env, untilReady: false })
    return restart(next.exited)
  }
}

/** Again until an API responds. */
async function send(method: string, path: string, body?: object): Promise<{ schedule: { id: string } }> {
  const init = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  return until(`${method} ${path} is answered`, async () => {
    const response = await fetch(`${urls[1]}${path}`, { method, ...init }).catch(() => null)
    return response?.ok ? JSON.parse((await response.text()) || '{}') : null
  })
}
