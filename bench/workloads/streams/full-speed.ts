/** Two hundred tasks at full speed, each with a viewer: deltas delivered per second. */
import { type Bench, interleave, type Results, ratio, scaled, streamOnce, type Workload } from '../../bench.ts'

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
    // Slow contestants send less, because the rate is compared.
    const deltas = scaled(bench, contestant.isSlow ? 100 : 400)
    const { received, seconds, cpu } = await streamOnce(bench, contestant, { tasks: scaled(bench, 200), deltas, perSecond: null })
    return {
      perSecond: received.deliveries / seconds,
      deltasPerFrame: received.deliveries / received.frames,
      serverMicros: (cpu.server / received.deliveries) * 1e6,
      speakerMicros: (cpu.speaker / received.deliveries) * 1e6,
      redisMicros: (cpu.redis / received.deliveries) * 1e6,
    }
  })
}
