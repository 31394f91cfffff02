/** New tasks: how many per second are accepted, that is committed and dispatched; and the time from a POST to its first delta. */
import { type Bench, type Figures, interleave, median, type Results, ratio, scaled, type Workload } from '../bench.ts'
import { type Child, startChild } from '../child.ts'
import { prepareTasks } from '../contestants/rivulet.ts'
import { firstDeltaMs } from '../measure/first-delta.ts'
import { createPoster } from '../measure/poster.ts'
import { type Platform, startPlatform } from '../platform.ts'

const inFlight = 50
const slots = 20
const posts = 1_200
const both = 'bare BullMQ add and one pg commit'
const body = { task: 0, plan: { tasks: 1, deltas: 1, perSecond: null } }

export const enqueue: Workload = {
  name: 'enqueue',
  title: '5. Enqueue: POST /v1/tasks, 50 in flight',
  columns: [
    { key: 'perSecond', title: 'per second' },
    { key: 'firstDeltaP50Ms', title: 'POST to first delta, p50 ms', digits: 1 },
    { key: 'firstDeltaP99Ms', title: 'p99 ms', digits: 1 },
  ],
  goals: [
    { text: 'POSTs/s, of bare BullMQ add and one pg commit', atLeast: 0.7, value: results => ratio(results, 'perSecond', 'Rivulet', both) },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const { redisUrl, databaseUrl } = bench.world
  const platform = await startPlatform(bench.world, { concurrency: slots, inFlight })
  const bare = await startChild('programs/limits.ts', { args: [redisUrl, databaseUrl] })
  const poster = createPoster(await bare.ask<string>('listen'), { inFlight })
  try {
    // Warm up, because a process is slower the first time.
    let [accepted] = await Promise.all([accept(bench, platform, posts / 2), post()])
    const rows: { name: string; measure: () => Promise<Figures> }[] = [
      { name: both, measure: async () => ({ perSecond: await ask(bare, 'addAndCommit') }) },
      { name: 'the same behind a bare Fastify route', measure: async () => ({ perSecond: await post() }) },
      { name: 'bare BullMQ add', measure: async () => ({ perSecond: await ask(bare, 'add') }) },
      { name: 'bare pg insert and commit', measure: async () => ({ perSecond: await ask(bare, 'commit') }) },
      { name: 'Rivulet', measure },
    ]
    return await interleave(bench, rows, row => row.measure())

    async function measure(): Promise<Figures> {
      // Not after the last round, because running the tasks takes longer than accepting them.
      await accepted.drain()
      const waits = await firstDeltas(bench, platform)
      accepted = await accept(bench, platform)
      return { perSecond: accepted.perSecond, ...waits }
    }
  } finally {
    poster.close()
    await Promise.all([bare.stop(), platform.close()])
  }

  async function post(): Promise<number> {
    const count = scaled(bench, posts)
    const began = performance.now()
    await Promise.all(Array.from({ length: count }, () => poster.post('/', body)))
    return (count * 1_000) / (performance.now() - began)
  }

  function ask(child: Child, name: string): Promise<number> {
    return child.ask(name, { count: scaled(bench, posts), inFlight })
  }
}

async function firstDeltas(bench: Bench, platform: Platform): Promise<Figures> {
  const waits: number[] = []
  for (let i = 0; i < scaled(bench, 100); i += 1) waits.push(await firstDeltaMs(platform))
  const sorted = waits.toSorted((a, b) => a - b)
  return { firstDeltaP50Ms: median(sorted), firstDeltaP99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0 }
}

/** `drain` lets the accepted tasks run, and resolves when they have ended. */
type Accepted = { perSecond: number; drain(): Promise<void> }

/** All slots of the worker are taken, so that no turn runs during the measurement. */
async function accept(bench: Bench, platform: Platform, most = posts): Promise<Accepted> {
  const holding = await prepareTasks(platform, { tasks: slots, deltas: 1, perSecond: null })
  const count = scaled(bench, most)
  const began = performance.now()
  await Promise.all(Array.from({ length: count }, () => platform.createTask(body)))
  const seconds = (performance.now() - began) / 1_000
  return { perSecond: count / seconds, drain: holding.clear }
}
