/** Two hundred tasks that say all they have as fast as it is taken, each with a viewer: what gets through. */
import { type Bench, interleave, type Results, ratio, scaled, streamOnce, type Workload } from '../bench.ts'

export const fullSpeed: Workload = {
  name: 'full-speed',
  title: '2. 200 tasks × 1 viewer, full speed',
  columns: [
    { key: 'perSecond', title: 'deltas delivered/s' },
    { key: 'deltasPerFrame', title: 'deltas per frame', digits: 1 },
    { key: 'serverMicros', title: 'server µs per delta', digits: 1 },
    { key: 'speakerMicros', title: 'speaker', digits: 1 },
    { key: 'redisMicros', title: 'Redis', digits: 1 },
  ],
  goals: [
    { text: "deliveries/s, of resumable-stream's", atLeast: 3.5, value: of('resumable-stream') },
    { text: "deliveries/s, of the straightforward way's", atLeast: 5, value: of('the straightforward way') },
  ],
  run,
}

function of(other: string): (results: Results) => number | null {
  return results => ratio(results, 'perSecond', 'Rivulet', other)
}

function run(bench: Bench): Promise<Results> {
  return interleave(bench, bench.contestants, async contestant => {
    // Of those who are slow, less: it is the rate that is compared.
    const deltas = scaled(bench, contestant.isSlow ? 100 : 500)
    const { heard, seconds, cpu } = await streamOnce(bench, contestant, { tasks: scaled(bench, 200), deltas, perSecond: null })
    return {
      perSecond: heard.deliveries / seconds,
      deltasPerFrame: heard.deliveries / heard.frames,
      serverMicros: (cpu.server / heard.deliveries) * 1e6,
      speakerMicros: (cpu.speaker / heard.deliveries) * 1e6,
      redisMicros: (cpu.redis / heard.deliveries) * 1e6,
    }
  })
}
