/**
 * A constant rate of events from more and more tasks with a viewer each: the cost of an event must not grow. Also what each of ten thousand
 * tasks holds in each process before it speaks, and how long their viewers take to connect.
 */
import { Redis } from 'ioredis'
import {
  type Bench,
  cpuOf,
  cpuOfEach,
  type Figures,
  type Results,
  ratio,
  receiveAll,
  scaled,
  streamOnce,
  type Workload,
  warmUp,
} from '../../bench.ts'
import { contestantOf } from '../../contestants/rivulet.ts'
import { heldByEach, inApi, inRedis, inWorker, measurable } from '../../measure/memory.ts'
import type { Plan } from '../../measure/speech.ts'
import { type Platform, startPlatform } from '../../platform.ts'
import { costs } from './costs.ts'

/** All tasks together. */
const eventsPerSecond = 5_000
const seconds = 4
const [fewest, most] = [10, 10_000]

export const tasks: Workload = {
  name: 'tasks',
  title: '7. Tasks: 5,000 events/s from 10 to 10,000 of them, and the memory and the viewers of 10,000 (one round)',
  columns: [
    { key: 'heldKilobytes', title: 'KB of heap and buffers each', digits: 1 },
    { key: 'residentKilobytes', title: 'KB resident each', digits: 1 },
    { key: 'connectedSeconds', title: 'all connected after s', digits: 1 },
    { key: 'serverMillis', title: 'server, ms of CPU per connected viewer', digits: 2 },
    { key: 'redisMillis', title: 'Redis', digits: 2 },
    { key: 'postgresMillis', title: 'Postgres', digits: 2 },
    { key: 'allMicros', title: 'server, Redis, speaker: µs per event', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 1 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
  ],
  goals: [
    {
      text: 's until 10,000 viewers of 10,000 tasks are connected, as after a restart of the API',
      atMost: 8,
      value: results => results.get(rowOf(most))?.connectedSeconds ?? null,
    },
    {
      text: 'CPU per event with 10,000 tasks, of that with 10',
      atMost: 1.3,
      value: results => ratio(results, 'allMicros', rowOf(most), rowOf(fewest)),
    },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: most, env: measurable })
  const rivulet = contestantOf(platform, bench.world)
  const results: Results = new Map()
  try {
    await warmUp(bench, rivulet)
    for (const count of [fewest, 100, 1_000]) {
      const plan = planOf(bench, count)
      results.set(rowOf(count), costs(await streamOnce(bench, rivulet, plan), plan.tasks))
    }
    return new Map([...results, ...(await ofMost(bench, platform))])
  } finally {
    await bench.crowd.close()
    // Without the end of ten thousand turns, which would take as long as the rest.
    await platform.close()
  }
}

async function ofMost({ crowd, world, ...bench }: Bench, platform: Platform): Promise<Results> {
  const rivulet = contestantOf(platform, world)
  const plan = planOf(bench, most)
  const redis = new Redis(world.redisUrl)
  try {
    const before = { worker: await inWorker(platform), redis: await inRedis(redis) }
    const prepared = await rivulet.prepare(plan)
    const worker = heldByEach(await inWorker(platform), before.worker, plan.tasks)
    const stored = heldByEach(await inRedis(redis), before.redis, plan.tasks)
    const unwatched = await inApi(platform)
    const connected = await connect()
    const watched = heldByEach(await inApi(platform), unwatched, plan.tasks)
    return new Map([
      [rowOf(most), { ...connected, ...costs(await receiveAll(crowd, rivulet, prepared), plan.tasks) }],
      ['one of these, in the worker', worker],
      ['one of these, in Redis', stored],
      ['one of these with its viewer, in the API', watched],
    ])

    async function connect(): Promise<Figures> {
      const cpuBefore = cpuOf(rivulet)
      const began = performance.now()
      await crowd.open({ requests: prepared.requests, viewersEach: 1, deltas: plan.deltas })
      return { connectedSeconds: (performance.now() - began) / 1_000, ...cpuOfEach(rivulet, cpuBefore, plan.tasks) }
    }
  } finally {
    redis.disconnect()
  }
}

function planOf(bench: Pick<Bench, 'scale'>, count: number): Plan {
  const perSecond = eventsPerSecond / count
  return { tasks: scaled(bench, count), deltas: scaled(bench, perSecond * seconds), perSecond }
}

function rowOf(count: number): string {
  return `${count.toLocaleString('en-US')} tasks × 1 viewer`
}
