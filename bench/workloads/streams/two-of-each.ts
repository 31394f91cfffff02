/**
 * Two API and two worker processes compared with one of each, on the same Redis and Postgres: the cost of a delivery in total, and for each
 * process. With enough cores, the capacity grows as the work of each process falls.
 */
import { type Bench, type Figures, interleave, type Results, ratio, scaled, streamOnce, type Workload, warmUp } from '../../bench.ts'
import { contestantOf } from '../../contestants/rivulet.ts'
import { type Platform, startPlatform } from '../../platform.ts'

const one = 'one API, one worker'
const two = 'two APIs, two workers'

export const twoOfEach: Workload = {
  name: 'two-of-each',
  title: '9. 200 tasks × 5 viewers, 50 deltas/s each: one of each process, and two',
  columns: [
    { key: 'allMicros', title: 'servers, speakers, Redis: µs per delivery', digits: 1 },
    { key: 'serverMicros', title: 'one server', digits: 1 },
    { key: 'speakerMicros', title: 'one speaker', digits: 1 },
    { key: 'redisMicros', title: 'Redis', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 2 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
  ],
  goals: [
    { text: 'work of each API with two of them, of that of one', atMost: 0.65, value: of('serverMicros') },
    { text: 'work of each worker with two of them, of that of one', atMost: 0.65, value: of('speakerMicros') },
  ],
  run,
}

function of(key: string): (results: Results) => number | null {
  return results => ratio(results, key, two, one)
}

async function run(bench: Bench): Promise<Results> {
  const platforms: { name: string; ofEach: number; platform: Platform }[] = []
  try {
    for (const [name, ofEach] of [
      [one, 1],
      [two, 2],
    ] as const) {
      const platform = await startPlatform(bench.world, { concurrency: 200 / ofEach, ofEach })
      platforms.push({ name, ofEach, platform })
      await warmUp(bench, contestantOf(platform, bench.world))
    }
    return await interleave(bench, platforms, ({ platform, ofEach }) => measure(bench, platform, ofEach))
  } finally {
    await Promise.all(platforms.map(({ platform }) => platform.close()))
  }
}

async function measure(bench: Bench, platform: Platform, ofEach: number): Promise<Figures> {
  const plan = { tasks: scaled(bench, 200), deltas: scaled(bench, 150), perSecond: 50 }
  const { received, cpu } = await streamOnce(bench, contestantOf(platform, bench.world), plan, 5)
  const micros = (used: number) => (used / received.deliveries) * 1e6
  return {
    allMicros: micros(cpu.server + cpu.redis + cpu.speaker),
    serverMicros: micros(cpu.server / ofEach),
    speakerMicros: micros(cpu.speaker / ofEach),
    redisMicros: micros(cpu.redis),
    p50Ms: received.p50Ms,
    p99Ms: received.p99Ms,
  }
}
