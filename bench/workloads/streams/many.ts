/** Two hundred tasks at a model's rate: each on a connection of its own, and all on one. */
import { type Bench, type Figures, interleave, type Results, ratio, scaled, streamOnce, type Workload, warmUp } from '../../bench.ts'
import type { Contestant, Prepared } from '../../contestant.ts'
import { rivulet } from '../../contestants/rivulet.ts'
import type { Plan } from '../../measure/speech.ts'

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
  const contestant = bench.contestants.find(({ name }) => name === rivulet.name)
  if (!contestant) throw new Error(`${rivulet.name} is not running`)
  const both = [
    { name: each, contestant },
    { name: together, contestant: onOneStream(contestant) },
  ]
  // Single connections were warmed up with all contestants.
  await warmUp(bench, onOneStream(contestant))
  return interleave(bench, both, row => measure(bench, row.contestant))
}

function onOneStream(contestant: Contestant): Contestant {
  return { ...contestant, prepare }

  async function prepare(plan: Plan): Promise<Prepared> {
    const prepared = await contestant.prepare(plan)
    return { ...prepared, requests: prepared.together ? [prepared.together()] : [] }
  }
}

async function measure(bench: Bench, contestant: Contestant): Promise<Figures> {
  const plan = { tasks: scaled(bench, 200), deltas: scaled(bench, 600), perSecond: 50 }
  const { received, cpu } = await streamOnce(bench, contestant, plan)
  return { serverMicros: (cpu.server / received.deliveries) * 1e6, p50Ms: received.p50Ms, p99Ms: received.p99Ms }
}
