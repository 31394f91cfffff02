/** Workers that die, freeze and wake: another worker takes over, and late writes are rejected. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { PlatformProcess } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

const talk = (words: number) => scripted([say(0, 'begin'), repeat(words, say(0, '.'), rest(50)), say(0, 'end')], { input: 'go' })

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 2, env: shortLease })
})
afterAll(() => platform.close())

test('what a killed worker ran is run by another, once its lease has ended; nothing it said remains', async () => {
  const deaths = await metric(platform.url, 'rivulet_worker_deaths_total')
  const tasks = await Promise.all(Array.from({ length: 3 }, () => platform.client.createTask(talk(80))))
  const viewers = tasks.map(({ task }) => watch(task.id, { urls: [platform.url] }))
  for (const viewer of viewers) await viewer.until('a few words', ({ text }) => text().length > 8)
  const victim = await workerOf(tasks[0]?.task.id)
  await victim.kill()
  for (const { task } of tasks) await platform.client.waitForEnd(task.id)
  for (const { task } of tasks) {
    const messages = await platform.client.messages(task.id)
    expect(messages.at(-1)?.content).toMatchObject({ text: `begin${'.'.repeat(80)}end` })
    expect(await faultsOf(platform, task.id)).toEqual([])
  }
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  expect(await metric(platform.url, 'rivulet_worker_deaths_total')).toBeGreaterThan(deaths)
  expect(await metric(platform.url, 'rivulet_reconciler_repairs_total', { kind: 'lease' })).toBeGreaterThan(0)
  await platform.startWorker()
})

test('a frozen worker that wakes after its lease writes nothing, and its handler is stopped', async () => {
  const { task } = await platform.client.createTask(talk(60))
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('a few words', ({ text }) => text().length > 8)
  const zombie = await workerOf(task.id)
  zombie.freeze()
  await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.attempt === 2 && turn.status === 'running')
  zombie.wake()
  await until('the zombie has noticed', () => zombie.lines.some(line => line.msg === 'turn lost' && line.task === task.id))
  await viewer.ended
  expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  const log = await platform.log(task.id)
  const second = log.findIndex(({ event }) => event.type === 'turn.started' && event.attempt === 2)
  expect(log.slice(second).filter(({ event }) => event.attempt !== 2)).toEqual([])
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
})

test('a frozen worker that wakes before another has claimed its turn goes on with it, and nothing died', async () => {
  for (const { kill, hasExited } of platform.workers) if (!hasExited()) await kill('SIGTERM')
  const late = await platform.startWorker()
  const { task } = await platform.client.createTask(talk(60))
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('a few words', ({ text }) => text().length > 8)
  const takenBack = await metric(platform.url, 'rivulet_leases_taken_back_total')
  late.freeze()
  await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.status === 'queued')
  late.wake()
  await viewer.ended
  expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(await metric(platform.url, 'rivulet_leases_taken_back_total')).toBe(takenBack + 1)
  const { rows } = await platform.pg.query('select deaths from turns where task = $1', [task.id])
  expect(rows).toEqual([{ deaths: 0 }])
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
})

test('workers whose clocks jump, an hour ahead or a minute behind, have the same results', async () => {
  for (const { kill, hasExited } of platform.workers) if (!hasExited()) await kill('SIGTERM')
  const jumping = await Promise.all([3_600_000, -60_000].map(ms => platform.startWorker({ NODE_OPTIONS: `--import=${clockJump(ms)}` })))
  const tasks = await Promise.all(Array.from({ length: 6 }, () => platform.client.createTask(talk(50))))
  const viewers = tasks.map(({ task }) => watch(task.id, { urls: [platform.url] }))
  for (const { task } of tasks) {
    expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await faultsOf(platform, task.id)).toEqual([])
  }
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  const after = await Promise.all(Array.from({ length: 4 }, () => platform.client.finishedTask({ agent: 'echo', input: 'after the jump' })))
  expect(after.map(({ task }) => task.status)).toEqual(Array(4).fill('completed'))
  expect(jumping.map(({ hasExited }) => hasExited())).toEqual([false, false])
})

/** A module that sets the clock of its process, a second after the start. */
function clockJump(ms: number): string {
  return `data:text/javascript,${encodeURIComponent(`const now=Date.now;setTimeout(()=>{Date.now=()=>now()+${ms}},1000).unref()`)}`
}

/** The process that runs a task's turn. */
async function workerOf(task: string | undefined): Promise<PlatformProcess> {
  const { rows } = await platform.pg.query<{ worker: string }>('select worker from turns where task = $1', [task])
  const found = platform.workers.find(({ lines }) => lines.some(line => line.msg === 'worker is ready' && line.worker === rows[0]?.worker))
  if (!found) throw new Error(`No worker of ours runs ${task}`)
  return found
}
