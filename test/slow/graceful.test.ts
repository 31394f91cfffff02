/** Replacing processes under load: an API sends its viewers to another, a worker finishes or releases its turns, and nothing is lost. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const cleanly = { code: 0, signal: null }
const talk = (words: number) => scripted([say(0, 'begin'), repeat(words, say(0, '.'), rest(50)), say(0, 'end')], { input: 'go' })

let platform: Platform
/** What stands in front of the APIs, for the workers. */
let balancer: FaultyProxy

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
  balancer = await startProxy(platform.url)
  await platform.startWorker({ RIVULET_URL: balancer.url.replace(/\/$/, '') })
})
afterAll(async () => {
  await platform.close()
  await balancer.close()
})

test('a deploy: new processes start beside the old ones, which stop while turns run and viewers watch', async () => {
  const viewers: Viewer[] = []
  // A request that the first rejects goes to the next.
  const urls = [platform.url]
  let isOver = false
  const load = keepBusy()
  const { task: long } = await platform.client.createTask(talk(1_000))
  const watcher = watch(long.id, { urls, query: '?from=start' })
  await watcher.until('it has begun', ({ frames }) => startsIn(frames()) === 1)
  const [oldApi] = platform.apis.filter(({ hasExited }) => !hasExited())
  const [oldWorker] = platform.workers.filter(({ hasExited }) => !hasExited())
  const newApi = await platform.startApi({ env: { MIGRATE: 'off' } })
  await platform.startWorker({ RIVULET_URL: newApi.url })
  urls.push(newApi.url)
  const started = viewers.length
  await until('both generations have work', () => viewers.length > started + 4)
  balancer.repoint(newApi.url)
  const stopping = performance.now()
  // The worker finishes the short turns, and gives the long one back: to the new API, because the old one is gone before.
  const [stoppedApi, stoppedWorker] = await Promise.all([
    oldApi?.kill('SIGTERM').then(exit => ({ ...exit, ms: performance.now() - stopping })),
    oldWorker?.kill('SIGTERM'),
  ])
  expect(stoppedApi).toEqual({ ...cleanly, ms: expect.any(Number) })
  expect(stoppedApi?.ms).toBeLessThan(10_000)
  expect(stoppedWorker).toEqual(cleanly)
  await watcher.until('it has begun anew', ({ frames }) => startsIn(frames()) === 2)
  urls.shift()
  isOver = true
  await load
  const [api] = platform.apis.filter(({ hasExited }) => !hasExited())
  if (!api) throw new Error('No API is left')
  const client = platform.clientOf(api)
  expect((await client.detail(long.id)).turns).toMatchObject([{ status: 'running', attempt: 1 }])
  await client.cancel(long.id)
  expect(await faultsOf({ client, log: platform.log }, long.id)).toEqual([])
  for (const task of new Set(viewers.map(({ journal }) => journal.task))) {
    expect((await client.waitForEnd(task)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await faultsOf({ client, log: platform.log }, task)).toEqual([])
  }
  expect(await faultsOfViewers({ ...platform, client }, [...viewers, watcher])).toEqual([])
  expect(await metric(api.url, 'rivulet_worker_deaths_total')).toBe(0)
  expect(viewers.some(({ journal }) => journal.connections.length > 1)).toBe(true)

  /** A few tasks at a time, each with two viewers. */
  async function keepBusy(): Promise<void> {
    while (!isOver) {
      for (const task of await Promise.all([1, 2].map(create))) viewers.push(...[0, 1].map(() => watch(task, { urls })))
      await until('most have ended', () => viewers.filter(({ state }) => state().status === 'completed').length >= viewers.length - 8)
    }
  }

  /** A client that is refused asks the next API, under the same key. */
  async function create(): Promise<string> {
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
      body: JSON.stringify(talk(20)),
    }
    let asked = 0
    return until('a task is accepted', async () => {
      const reply = await fetch(`${urls[asked++ % urls.length]}/v1/tasks`, request).catch(() => null)
      return reply?.ok && ((await reply.json()) as { task: { id: string } }).task.id
    })
  }
})

function startsIn(frames: ReturnType<Viewer['frames']>): number {
  return frames.filter(({ data }) => data.type === 'turn.started').length
}
