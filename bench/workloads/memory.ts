/** Memory of ten thousand idle viewers in the API process, and of ten thousand live tasks in each process; and how long their viewers take to connect. */
import { Redis } from 'ioredis'
import { metric } from '../../test/support/platform/metrics.ts'
import { collectingOptions, heldMemory } from '../../test/support/process/collect-garbage.ts'
import { type Bench, cpuOf, cpuOfEach, type Results, scaled, type Workload } from '../bench.ts'
import { contestantOf, prepareTasks } from '../contestants/rivulet.ts'
import { residentBytes } from '../measure/cpu.ts'
import { type Platform, startPlatform } from '../platform.ts'

const viewer = 'an idle viewer, in the API'
const watchedTask = 'a live task with its viewer, in the API'
/** Without keys, because the workload reads the API's metrics. */
const env = { ...collectingOptions, RIVULET_KEY: '', RIVULET_WORKER_KEY: '' }
const silent = { deltas: 1, perSecond: null }

export const memory: Workload = {
  name: 'memory',
  title: '7. Memory: 10,000 idle viewers, 10,000 live tasks',
  columns: [
    { key: 'heldKilobytes', title: 'KB of heap and buffers each', digits: 1 },
    { key: 'residentKilobytes', title: 'KB resident each', digits: 1 },
    { key: 'count', title: 'of' },
    { key: 'connectedSeconds', title: 'all connected after s', digits: 1 },
    { key: 'serverMillis', title: 'server, ms of CPU per connected viewer', digits: 2 },
    { key: 'redisMillis', title: 'Redis', digits: 2 },
    { key: 'postgresMillis', title: 'Postgres', digits: 2 },
  ],
  goals: [
    { text: 'KB that an idle viewer holds', atMost: 15, value: results => results.get(viewer)?.heldKilobytes ?? null },
    {
      text: 's until 10,000 viewers of 10,000 tasks are connected, as after a restart of the API',
      atMost: 8,
      value: results => results.get(watchedTask)?.connectedSeconds ?? null,
    },
  ],
  run,
}

type Held = { held: number; resident: number }

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: 10_000, env })
  try {
    return new Map([...(await ofViewers(bench, platform)), ...(await ofTasks(bench, platform))])
  } finally {
    await bench.crowd.close()
    await platform.close()
  }
}

async function ofViewers(bench: Bench, platform: Platform): Promise<Results> {
  const { crowd } = bench
  const tasks = scaled(bench, 100)
  const { requests, clear } = await prepareTasks(platform, { ...silent, tasks })
  // Open and close connections first, so that one-time allocations of the process do not count as a viewer's memory.
  await crowd.open({ requests, viewersEach: 10, deltas: 0 })
  await crowd.close()
  await crowd.open({ requests, viewersEach: 1, deltas: 0 })
  const before = await inApi(platform)
  await crowd.open({ requests, viewersEach: 100, deltas: 0 })
  const after = await inApi(platform)
  const viewers = await metric(platform.api.url, 'rivulet_viewers')
  if (viewers !== tasks * 100) throw new Error(`${viewers} of ${tasks * 100} viewers are connected`)
  await crowd.close()
  await clear()
  return new Map([[viewer, each(after, before, tasks * 99)]])
}

async function ofTasks(bench: Bench, platform: Platform): Promise<Results> {
  const { crowd, world } = bench
  const tasks = scaled(bench, 10_000)
  const redis = new Redis(world.redisUrl)
  try {
    const before = { worker: inWorker(platform), redis: await inRedis(redis) }
    const { requests } = await prepareTasks(platform, { ...silent, tasks })
    const worker = each(inWorker(platform), before.worker, tasks)
    const stored = each(await inRedis(redis), before.redis, tasks)
    const unwatched = await inApi(platform)
    const contestant = contestantOf(platform, world)
    const cpuBefore = cpuOf(contestant)
    const began = performance.now()
    await crowd.open({ requests, viewersEach: 1, deltas: 0 })
    const connectedSeconds = (performance.now() - began) / 1_000
    const cpu = cpuOfEach(contestant, cpuBefore, tasks)
    const watched = { ...each(await inApi(platform), unwatched, tasks), connectedSeconds, ...cpu }
    return new Map([
      ['a live task, in the worker', worker],
      ['a live task, in Redis', stored],
      [watchedTask, watched],
    ])
  } finally {
    redis.disconnect()
  }
}

async function inApi({ api }: Platform): Promise<Held> {
  const held = await heldMemory(api)
  return { held, resident: residentBytes(api.pid) }
}

function inWorker({ worker }: Platform): Held {
  process.kill(worker.pid, 'SIGUSR2')
  return { held: Number.NaN, resident: residentBytes(worker.pid) }
}

async function inRedis(redis: Redis): Promise<Held> {
  const info = await redis.info('memory')
  const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return { held: bytes('used_memory'), resident: bytes('used_memory_rss') }
}

function each(after: Held, before: Held, count: number) {
  const kilobytes = (of: keyof Held) => (after[of] - before[of]) / count / 1_024
  return { heldKilobytes: kilobytes('held'), residentKilobytes: kilobytes('resident'), count }
}
