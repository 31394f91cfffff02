/** A worker without Redis compared with one that has it, on the same Redis and Postgres: what the API does for it, and how much later words arrive. */
import { type Bench, type Figures, interleave, type Results, ratio, scaled, streamOnce, type Workload, warmUp } from '../../bench.ts'
import { contestantOf } from '../../contestants/rivulet.ts'
import { type Platform, startPlatform } from '../../platform.ts'

const redis = 'RIVULET_TRANSPORT=redis'
const http = 'RIVULET_TRANSPORT=http'

export const transport: Workload = {
  name: 'transport',
  title: '14. 200 tasks × 1 viewer, 50 deltas/s each: a worker with Redis, and one without',
  columns: [
    { key: 'allMicros', title: 'server, speaker, Redis: µs per delivery', digits: 1 },
    { key: 'serverMicros', title: 'server', digits: 1 },
    { key: 'speakerMicros', title: 'speaker', digits: 1 },
    { key: 'redisMicros', title: 'Redis', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 2 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
  ],
  goals: [
    { text: 'work per delivery over HTTP, of that over Redis', atMost: 2, value: results => ratio(results, 'allMicros', http, redis) },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platforms: { name: string; platform: Platform }[] = []
  try {
    for (const [name, env] of [
      [redis, {}],
      [http, { RIVULET_TRANSPORT: 'http' }],
    ] as const) {
      const platform = await startPlatform(bench.world, { concurrency: 200, env })
      platforms.push({ name, platform })
      await warmUp(bench, contestantOf(platform, bench.world))
    }
    return await interleave(bench, platforms, ({ platform }) => measure(bench, platform))
  } finally {
    await Promise.all(platforms.map(({ platform }) => platform.close()))
  }
}

async function measure(bench: Bench, platform: Platform): Promise<Figures> {
  const plan = { tasks: scaled(bench, 200), deltas: scaled(bench, 150), perSecond: 50 }
  const { received, cpu } = await streamOnce(bench, contestantOf(platform, bench.world), plan)
  const micros = (used: number) => (used / received.deliveries) * 1e6
  return {
    ...{ allMicros: micros(cpu.server + cpu.redis + cpu.speaker), serverMicros: micros(cpu.server) },
    ...{ speakerMicros: micros(cpu.speaker), redisMicros: micros(cpu.redis), p50Ms: received.p50Ms, p99Ms: received.p99Ms },
  }
}
