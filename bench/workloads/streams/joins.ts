/** A thousand viewers join a task at once while it speaks: how long until the last of them is up to date, and what it costs the server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, cpuOf, type Figures, interleave, type Results, ratio, scaled, type Workload } from '../../bench.ts'
import type { Contestant } from '../../contestant.ts'

/**
 * The straightforward way cannot deliver as much as 1,000 viewers get, so the last of them joins only after the task has ended: its figure grows
 * with what is sent after the joins.
 */
export const joins: Workload = {
  name: 'joins',
  title: '4b. 1,000 viewers join a task at once, after 50 of its 150 deltas, 20 deltas/s',
  columns: [
    { key: 'joinedSeconds', title: 'all joined after s', digits: 2 },
    { key: 'serverMillis', title: 'server, ms of CPU in all' },
    { key: 'megabytes', title: 'MB', digits: 1 },
  ],
  goals: [
    { text: 'times faster than the straightforward way', atLeast: 5, value: results => fasterThan(results, 'the straightforward way') },
    { text: 'times faster than resumable-stream', atLeast: 1.5, value: results => fasterThan(results, 'resumable-stream') },
  ],
  run: bench => interleave(bench, bench.contestants, contestant => measure(bench, contestant)),
}

function fasterThan(results: Results, other: string): number | null {
  return ratio(results, 'joinedSeconds', other, 'Rivulet')
}

async function measure(bench: Bench, contestant: Contestant): Promise<Figures> {
  const { crowd } = bench
  const plan = { tasks: 1, deltas: scaled(bench, 150), perSecond: 20 }
  const prepared = await contestant.prepare(plan)
  try {
    const spoken = prepared.speak()
    await sleep((plan.deltas / 3 / plan.perSecond) * 1_000)
    const request = prepared.snapshot ?? prepared.requests[0]
    if (!request) throw new Error('There are no tasks')
    const before = cpuOf(contestant).server
    await crowd.open({ requests: [request], viewersEach: scaled(bench, 1_000), deltas: plan.deltas })
    const [{ openingAt, joinedAt, bytes }] = await Promise.all([crowd.receive(), spoken])
    const serverMillis = (cpuOf(contestant).server - before) * 1_000
    return { joinedSeconds: (joinedAt - openingAt) / 1e6, serverMillis, megabytes: bytes / 1e6 }
  } finally {
    await crowd.close()
    await prepared.clear()
  }
}
