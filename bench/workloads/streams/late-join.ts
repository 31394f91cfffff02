/** Two hundred viewers join after two thousand deltas: how long until the last viewer has received all of them. */
import { type Bench, type Figures, interleave, type Results, ratio, scaled, type Workload } from '../../bench.ts'
import type { Contestant } from '../../contestant.ts'

export const lateJoin: Workload = {
  name: 'late-join',
  title: '4. Late join: 200 viewers fetch a backlog of 2,000 deltas',
  columns: [
    { key: 'seconds', title: 'all done after s', digits: 2 },
    { key: 'megabytes', title: 'MB', digits: 1 },
    { key: 'snapshotSeconds', title: 'by snapshot s', digits: 2 },
  ],
  goals: [
    { text: 'times faster than resumable-stream', atLeast: 2.5, value: fasterThan('resumable-stream') },
    { text: 'times faster than the straightforward way', atLeast: 20, value: fasterThan('the straightforward way') },
  ],
  run: bench => interleave(bench, bench.contestants, contestant => measure(bench, contestant)),
}

function fasterThan(other: string): (results: Results) => number | null {
  return results => ratio(results, 'seconds', other, 'Rivulet')
}

async function measure({ crowd, scale }: Bench, contestant: Contestant): Promise<Figures> {
  // At a rate at which the worker merges one in a hundred, so that two thousand deltas are nearly as many events in the log.
  const plan = { tasks: 1, deltas: scaled({ scale }, 2_000), perSecond: 1_000 }
  const prepared = await contestant.prepare(plan)
  try {
    await prepared.speak()
    const [request] = prepared.requests
    if (!request) throw new Error('There are no tasks')
    const viewersEach = scaled({ scale }, 200)
    await crowd.open({ requests: [request], viewersEach, deltas: plan.deltas })
    const { lastAt, openingAt, bytes } = await crowd.receive()
    await crowd.close()
    const figures = { seconds: (lastAt - openingAt) / 1e6, megabytes: bytes / 1e6 }
    if (!prepared.snapshot) return figures
    await crowd.open({ requests: [prepared.snapshot], viewersEach, deltas: plan.deltas })
    const joined = await crowd.receive()
    return { ...figures, snapshotSeconds: (joined.lastAt - joined.openingAt) / 1e6 }
  } finally {
    await crowd.close()
    await prepared.clear()
  }
}
