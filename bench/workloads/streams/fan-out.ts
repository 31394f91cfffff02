/** One task with a thousand viewers: the CPU of the server per delivery. */
import { type Bench, interleave, type Results, ratio, scaled, streamOnce, type Workload } from '../../bench.ts'

export const fanOut: Workload = {
  name: 'fan-out',
  title: '1. One task × 1,000 viewers × 60 deltas, 20 deltas/s',
  columns: [
    { key: 'serverMicros', title: 'server µs per delivery', digits: 1 },
    { key: 'allMicros', title: 'with speaker and Redis', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 1 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
  ],
  goals: [
    { text: 'server CPU per delivery, of bare socket.write', atMost: 1.3, value: of('bare socket.write') },
    { text: 'server CPU per delivery, of bare res.write', atMost: 0.65, value: of('bare res.write') },
    { text: "server CPU per delivery, of nchan's", atMost: 1, value: of('nginx nchan') },
  ],
  run,
}

function of(other: string): (results: Results) => number | null {
  return results => ratio(results, 'serverMicros', 'Rivulet', other)
}

function run(bench: Bench): Promise<Results> {
  const plan = { tasks: 1, deltas: scaled(bench, 60), perSecond: 20 }
  return interleave(bench, bench.contestants, async contestant => {
    const { received, cpu } = await streamOnce(bench, contestant, plan, scaled(bench, 1_000))
    return {
      serverMicros: (cpu.server / received.deliveries) * 1e6,
      allMicros: ((cpu.server + cpu.speaker + cpu.redis) / received.deliveries) * 1e6,
      p50Ms: received.p50Ms,
      p99Ms: received.p99Ms,
    }
  })
}
