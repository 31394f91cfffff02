/** Turns that end at the same time: how many per second are folded, committed and announced. And whole turns, from POST to commit, with their CPU. */
import { type Bench, cpuOf, cpuOfEach, type Figures, interleave, type Results, ratio, scaled, type Workload } from '../bench.ts'
import { startChild } from '../child.ts'
import type { Contestant } from '../contestant.ts'
import { contestantOf, rivulet } from '../contestants/rivulet.ts'
import { startPlatform } from '../platform.ts'

const plan = { deltas: 20, perSecond: null }
const bareQueue = 'bare BullMQ, add and process'

export const finish: Workload = {
  name: 'finish',
  title: '6. Finish: 1,000 turns of 20 deltas each',
  columns: [
    { key: 'perSecond', title: 'turns committed/s' },
    { key: 'wholePerSecond', title: 'whole turns/s, POST to commit' },
    { key: 'serverMillis', title: 'server, ms of CPU per whole turn', digits: 2 },
    { key: 'speakerMillis', title: 'speaker', digits: 2 },
    { key: 'redisMillis', title: 'Redis', digits: 2 },
    { key: 'postgresMillis', title: 'Postgres', digits: 2 },
    { key: 'beginP50Ms', title: 'add to start of a job, p50 ms', digits: 1 },
  ],
  goals: [
    {
      text: 'whole turns/s, of bare BullMQ add and process',
      atLeast: 0.12,
      value: results => ratio(results, 'wholePerSecond', 'Rivulet', bareQueue),
    },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const { redisUrl, databaseUrl } = bench.world
  const load = { count: scaled(bench, 5_000), inFlight: 50 }
  const tasks = scaled(bench, 1_000)
  const platform = await startPlatform(bench.world, { concurrency: tasks })
  const bare = await startChild('programs/limits.ts', { args: [redisUrl, databaseUrl] })
  const others = bench.contestants.filter(({ name, runWhole }) => runWhole && name !== rivulet.name)
  try {
    const rows: { name: string; measure: () => Promise<Figures> }[] = [
      { name: 'bare pg insert and commit', measure: async () => ({ perSecond: await bare.ask<number>('commit', load) }) },
      { name: bareQueue, measure: () => processed() },
      { name: rivulet.name, measure: () => measure(contestantOf(platform, bench.world), tasks) },
      ...others.map(other => ({ name: other.name, measure: () => wholeTurns(other, scaled(bench, other.isSlow ? 200 : 1_000)) })),
    ]
    return await interleave(bench, rows, row => row.measure())
  } finally {
    await Promise.all([bare.stop(), platform.close()])
  }

  async function processed(): Promise<Figures> {
    const { perSecond, beginP50Ms } = await bare.ask<{ perSecond: number; beginP50Ms: number }>('process', load)
    return { wholePerSecond: perSecond, beginP50Ms }
  }
}

async function measure(platform: Contestant, tasks: number): Promise<Figures> {
  const prepared = await platform.prepare({ ...plan, tasks })
  await prepared.speak()
  const began = performance.now()
  await prepared.clear()
  const perSecond = (tasks * 1_000) / (performance.now() - began)
  return { perSecond, ...(await wholeTurns(platform, tasks)) }
}

async function wholeTurns(contestant: Contestant, tasks: number): Promise<Figures> {
  const cpuBefore = cpuOf(contestant)
  const began = performance.now()
  await contestant.runWhole?.({ ...plan, tasks })
  const wholePerSecond = (tasks * 1_000) / (performance.now() - began)
  return { wholePerSecond, ...cpuOfEach(contestant, cpuBefore, tasks) }
}
