/** A worker that is killed with many turns: they go on elsewhere as soon as their leases have ended, among others, in no process of their own. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const count = 40

let platform: Platform

beforeAll(async () => {
  // No round of the reconciler comes to help before the test is over.
  platform = await startPlatform({ workers: 2, env: { ...shortLease, RECONCILE_MS: '3600000', WORKER_CONCURRENCY: String(count) } })
})
afterAll(() => platform.close())

test('forty turns of a killed worker go on in the other one, between two rounds of the reconciler', async () => {
  const talk = scripted([say(0, 'begin'), repeat(100, say(0, '.'), rest(50))])
  const tasks = await Promise.all(Array.from({ length: count }, () => platform.client.createTask(talk)))
  const running = "select count(*)::int as running from turns where status = 'running'"
  await until('all of them run', async () => (await platform.pg.query(running)).rows[0]?.running === count)
  const [victim, survivor] = platform.workers
  await victim?.kill()
  for (const { task } of tasks) expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed' }])
  const { rows } = await platform.pg.query('select deaths, attempt, count(*)::int from turns group by deaths, attempt order by deaths')
  expect(rows).toMatchObject([
    { deaths: 0, attempt: 1 },
    { deaths: 1, attempt: 2 },
  ])
  const programs = new Set(survivor?.lines.flatMap(({ msg, pid }) => (msg === 'attempt ended' ? [pid] : [])))
  expect([...programs]).toEqual([survivor?.pid])
  for (const { task } of tasks) expect(await faultsOf(platform, task.id)).toEqual([])
})
