/** The latency of workload 3 by stage: when a delta is published, when it is received, and the pauses of each process. */
import { type Bench, type Figures, medians, type Results, scaled, streamOnce, type Workload, warmUp } from '../../bench.ts'
import { startChild } from '../../child.ts'
import { contestantOf } from '../../contestants/rivulet.ts'
import { startPlatform } from '../../platform.ts'
import type { Pauses } from '../../programs/probe.ts'

export const latency: Workload = {
  name: 'latency',
  title: '3b. 200 tasks × 1 viewer, 50 deltas/s each: where the time goes',
  columns: [
    { key: 'p50Ms', title: 'p50 ms', digits: 2 },
    { key: 'p99Ms', title: 'p99 ms', digits: 2 },
    { key: 'maxMs', title: 'max ms', digits: 1 },
    { key: 'loopP99Ms', title: 'loop late, p99 ms', digits: 2 },
    { key: 'loopMaxMs', title: 'max ms', digits: 1 },
    { key: 'gcMs', title: 'collecting garbage, ms in all', digits: 0 },
    { key: 'gcMaxMs', title: 'longest ms', digits: 1 },
  ],
  goals: [],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: 1_000, isProbed: true })
  const rivulet = contestantOf(platform, bench.world)
  const listener = await startChild('programs/listener.ts', { args: [bench.world.redisUrl, `${platform.redisPrefix}:*:events:*`] })
  const rows = new Map<string, Figures[]>()
  try {
    await warmUp(bench, rivulet)
    for (let round = 0; round < bench.rounds; round += 1) {
      for (const [name, figures] of await measure()) rows.set(name, [...(rows.get(name) ?? []), figures])
    }
    return new Map(Array.from(rows, ([name, taken]) => [name, medians(taken)]))
  } finally {
    await Promise.all([listener.stop(), rivulet.close()])
  }

  async function measure(): Promise<Results> {
    const processes = [platform.api.child, platform.worker]
    for (const child of processes) await child.ask('beginProbe')
    await listener.ask('read')
    const { received } = await streamOnce(bench, rivulet, { tasks: scaled(bench, 200), deltas: scaled(bench, 150), perSecond: 50 })
    const [api, worker] = await Promise.all(processes.map(child => child.ask<Pauses>('readProbe')))
    const published = await listener.ask<Figures>('read')
    return new Map<string, Figures>([
      ['sent → published', published],
      ['sent → received', { p50Ms: received.p50Ms, p99Ms: received.p99Ms, maxMs: received.maxMs }],
      ['the worker', { ...worker }],
      ['the API', { ...api }],
      ['the viewers', { loopP99Ms: received.lagMs, loopMaxMs: received.lagMaxMs }],
    ])
  }
}
