/** Two hundred tasks at a model's rate: each on a connection of its own, and all on one. */
import { type Bench, type Figures, interleave, type Results, ratio, scaled, streamOnce, type Workload } from '../../bench.ts'
import type { Contestant } from '../../contestant.ts'
import { contestantOf, prepareTasks } from '../../contestants/rivulet.ts'
import { requestForMany } from '../../crowd.ts'
import { authorization, type Platform, startPlatform } from '../../platform.ts'

const each = '200 connections'
const together = 'one connection'

export const many: Workload = {
  name: 'many',
  title: '10. 200 tasks, 50 deltas/s each: a connection for each, and one for all',
  columns: [
    { key: 'serverMicros', title: 'server µs per delivery', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 2 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
  ],
  goals: [{ text: 'server CPU of one connection, of 200', atMost: 0.5, value: results => ratio(results, 'serverMicros', together, each) }],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: 200 })
  try {
    const single = contestantOf(platform, bench.world)
    const both = [
      { name: each, contestant: single },
      { name: together, contestant: { ...single, prepare: preparing(platform) } },
    ]
    // A warm-up.
    for (const { contestant } of both) await measure(bench, contestant)
    return await interleave(bench, both, ({ contestant }) => measure(bench, contestant))
  } finally {
    await platform.close()
  }
}

function preparing(platform: Platform): Contestant['prepare'] {
  return async plan => {
    const prepared = await prepareTasks(platform, plan)
    return { ...prepared, requests: [requestForMany(platform.apis[0]?.url ?? '', prepared.tasks, authorization)] }
  }
}

async function measure(bench: Bench, contestant: Contestant): Promise<Figures> {
  const plan = { tasks: scaled(bench, 200), deltas: scaled(bench, 250), perSecond: 50 }
  const { received, cpu } = await streamOnce(bench, contestant, plan)
  return { serverMicros: (cpu.server / received.deliveries) * 1e6, p50Ms: received.p50Ms, p99Ms: received.p99Ms }
}
