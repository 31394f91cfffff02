/** Two hundred tasks at a model's rate, each with a viewer: latency and CPU per event. And one task on an idle machine. */
import { type Bench, type Figures, interleave, type Results, ratio, scaled, streamOnce, type Workload } from '../../bench.ts'
import type { Contestant } from '../../contestant.ts'

export const paced: Workload = {
  name: 'paced',
  title: '3. 200 tasks × 1 viewer, 50 deltas/s each',
  columns: [
    { key: 'p50Ms', title: 'p50 ms', digits: 2 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
    { key: 'serverRedisMicros', title: 'server and Redis µs per event', digits: 1 },
    { key: 'serverMicros', title: 'server', digits: 1 },
    { key: 'redisMicros', title: 'Redis', digits: 1 },
    { key: 'speakerMicros', title: 'speaker', digits: 1 },
    { key: 'allMicros', title: 'all three', digits: 1 },
    { key: 'perSecond', title: 'events/s', digits: 0 },
    { key: 'idleP50Ms', title: 'one task alone: p50 ms', digits: 2 },
    { key: 'lagMs', title: "the load's own p99 lag, ms", digits: 1 },
  ],
  goals: [
    { text: 'server CPU per event, of bare socket.write', atMost: 1.15, value: of('serverMicros', 'bare socket.write') },
    {
      text: "server, Redis and speaker CPU per event, of the straightforward way's",
      atMost: 0.75,
      value: of('allMicros', 'the straightforward way'),
    },
    { text: "p99, of nchan's", atMost: 3, value: of('p99Ms', 'nginx nchan') },
    { text: 'p50 of one task alone, ms', atMost: 5, value: results => results.get('Rivulet')?.idleP50Ms ?? null },
  ],
  run: bench => interleave(bench, bench.contestants, contestant => measure(bench, contestant)),
}

function of(key: string, other: string): (results: Results) => number | null {
  return results => ratio(results, key, 'Rivulet', other)
}

async function measure(bench: Bench, contestant: Contestant): Promise<Figures> {
  const { received, seconds, cpu } = await streamOnce(bench, contestant, {
    ...{ tasks: scaled(bench, 200), deltas: scaled(bench, 150), perSecond: 50 },
  })
  const idle = await streamOnce(bench, contestant, { tasks: 1, deltas: scaled(bench, 20), perSecond: 20 })
  const micros = (used: number) => (used / received.deliveries) * 1e6
  return {
    p50Ms: received.p50Ms,
    p99Ms: received.p99Ms,
    serverRedisMicros: micros(cpu.server + cpu.redis),
    allMicros: micros(cpu.server + cpu.redis + cpu.speaker),
    serverMicros: micros(cpu.server),
    redisMicros: micros(cpu.redis),
    speakerMicros: micros(cpu.speaker),
    perSecond: received.deliveries / seconds,
    idleP50Ms: idle.received.p50Ms,
    lagMs: received.lagMs,
  }
}
