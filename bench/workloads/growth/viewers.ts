/** A constant rate of deliveries to more and more viewers of a task: the cost of a delivery must not grow. And the memory of an idle viewer. */
import { metric } from '../../../test/support/platform/metrics.ts'
import { type Bench, type Results, ratio, scaled, streamOnce, type Workload, warmUp } from '../../bench.ts'
import { contestantOf, prepareTasks } from '../../contestants/rivulet.ts'
import { heldByEach, inApi, measurable } from '../../measure/memory.ts'
import { type Platform, startPlatform } from '../../platform.ts'
import { costs } from './costs.ts'

/** To all viewers together. */
const deliveriesPerSecond = 20_000
const seconds = 3
const [fewest, most] = [100, 10_000]
const idle = 'an idle viewer, of 10,000'

export const viewers: Workload = {
  name: 'viewers',
  title: '8. Viewers: the memory of 10,000 idle ones, and 20,000 deliveries/s of one task to 100 to 10,000 of them (one round)',
  columns: [
    { key: 'heldKilobytes', title: 'KB of heap and buffers each', digits: 1 },
    { key: 'residentKilobytes', title: 'KB resident each', digits: 1 },
    { key: 'serverMicros', title: 'server µs per delivery', digits: 1 },
    { key: 'allMicros', title: 'with speaker and Redis', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 1 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
    { key: 'deltasPerFrame', title: 'deltas per frame', digits: 2 },
  ],
  goals: [
    { text: 'KB that an idle viewer holds', atMost: 15, value: results => results.get(idle)?.heldKilobytes ?? null },
    {
      text: 'server CPU per delivery with 10,000 viewers, of that with 100',
      atMost: 1.3,
      value: results => ratio(results, 'serverMicros', rowOf(most), rowOf(fewest)),
    },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: 100, env: measurable })
  const rivulet = contestantOf(platform, bench.world)
  try {
    const results = await ofIdle(bench, platform)
    await warmUp(bench, rivulet)
    for (const count of [fewest, 1_000, most]) {
      const perSecond = deliveriesPerSecond / count
      const plan = { tasks: 1, deltas: scaled(bench, perSecond * seconds), perSecond }
      const each = scaled(bench, count)
      results.set(rowOf(count), costs(await streamOnce(bench, rivulet, plan, each), each))
    }
    return results
  } finally {
    await bench.crowd.close()
    await platform.close()
  }
}

async function ofIdle(bench: Bench, platform: Platform): Promise<Results> {
  const { crowd } = bench
  const tasks = scaled(bench, 100)
  const { requests, clear } = await prepareTasks(platform, { tasks, deltas: 1, perSecond: null })
  // Open and close connections first, so that one-time allocations of the process do not count as a viewer's memory.
  await crowd.open({ requests, viewersEach: 10, deltas: 0 })
  await crowd.close()
  await crowd.open({ requests, viewersEach: 1, deltas: 0 })
  const before = await inApi(platform)
  await crowd.open({ requests, viewersEach: 100, deltas: 0 })
  const after = await inApi(platform)
  const connected = await metric(platform.api.url, 'rivulet_viewers')
  if (connected !== tasks * 100) throw new Error(`${connected} of ${tasks * 100} viewers are connected`)
  await crowd.close()
  await clear()
  return new Map([[idle, heldByEach(after, before, tasks * 99)]])
}

function rowOf(count: number): string {
  return `1 task × ${count.toLocaleString('en-US')} viewers`
}
