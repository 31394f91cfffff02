/** The clock of Postgres is set while turns run and wait: live workers keep what they run, and what waits without a delay starts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { ownClockOf, type SetClock } from '../support/engines/postgres-clock.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { Client } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000
const leaseMs = Number(shortLease.LEASE_MS)
let platform: Platform
let client: Client
let setClock: SetClock

beforeAll(async () => {
  platform = await startPlatform({ apis: 0, workers: 0 })
  setClock = await ownClockOf(platform.databaseUrl)
  // Heartbeats come seldom: leases that end by the clock are found before they are renewed.
  client = platform.clientOf(await platform.startApi({ env: { ...shortLease, HEARTBEAT_MS: '1500' } }))
})
afterAll(() => platform.close())

test('turns of live workers go on when the clock is set ahead by more than a lease', async () => {
  const startWorker = () => platform.startWorker({ RIVULET_URL: platform.apis[0]?.url ?? '', ...shortLease, HEARTBEAT_MS: '1500' })
  await untilLeasesEnd(await startWorker())
  await Promise.all([startWorker(), startWorker()])
  const script = [say(0, 'begun'), rest(3 * leaseMs), say(0, ' and ended')]
  const tasks = await Promise.all(Array.from({ length: 4 }, () => client.createTask(scripted(script, { timeoutMs: 2 * hour }))))
  await until('all run', async () => (await countOf("status = 'running'")) === tasks.length)
  const before = await countOf('deaths > 0')
  await setClock(hour)
  for (const { task } of tasks) {
    expect((await client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect((await client.messages(task.id)).at(-1)).toMatchObject({ content: { text: 'begun and ended' } })
    expect(await faultsOf({ client, log: platform.log }, task.id)).toEqual([])
  }
  expect(await countOf('deaths > 0')).toBe(before)
})

test('a turn that waits for a worker starts at once when the clock is set back, and one with a delay keeps its time', async () => {
  for (const worker of platform.workers) await worker.kill()
  await setClock(hour)
  const { task } = await client.createTask({ agent: 'echo', input: 'hello' })
  const delayed = await client.createTask({ agent: 'echo', input: 'hello', delayMs: hour })
  await setClock(0)
  await platform.startWorker({ RIVULET_URL: platform.apis[0]?.url ?? '', ...shortLease })
  expect((await client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect((await client.detail(delayed.task.id)).turns).toMatchObject([{ status: 'queued', attempt: 0 }])
  await client.cancel(delayed.task.id)
})

/** An API takes no lease for ended before it has run for a lease: until the turn of a worker that was killed waits for another. */
async function untilLeasesEnd(worker: { kill(): Promise<unknown> }): Promise<void> {
  const { task } = await client.createTask(scripted([say(0, 'begun'), rest(60_000)]))
  await until('it runs', async () => (await client.detail(task.id)).turns[0]?.status === 'running')
  await worker.kill()
  await until('it waits for another worker', async () => (await client.detail(task.id)).turns[0]?.status === 'queued')
  await client.cancel(task.id)
}

async function countOf(condition: string): Promise<number> {
  return (await platform.pg.query(`select count(*)::int from turns where ${condition}`)).rows[0].count
}
