/** A constant rate of events from more and more tasks, and a constant rate of deliveries to more and more viewers: the cost of each must not grow. */
import { type Bench, type Figures, type Results, ratio, scaled, streamOnce, type Workload } from '../../bench.ts'
import type { Contestant } from '../../contestant.ts'
import { contestantOf } from '../../contestants/rivulet.ts'
import type { Plan } from '../../measure/speech.ts'
import { startPlatform } from '../../platform.ts'

/** All tasks together. */
const eventsPerSecond = 5_000
const deliveriesPerSecond = 20_000
const seconds = 4
const taskCounts = [10, 100, 1_000, 10_000]
const viewerCounts = [100, 1_000, 10_000]

export const growth: Workload = {
  name: 'growth',
  title: `8. Growth: 5,000 events/s from 10 to 10,000 tasks; 20,000 deliveries/s of one task to 100 to 10,000 viewers (one round)`,
  columns: [
    { key: 'allMicros', title: 'server, Redis, speaker: µs per event', digits: 1 },
    { key: 'serverMicros', title: 'server', digits: 1 },
    { key: 'redisMicros', title: 'Redis', digits: 1 },
    { key: 'speakerMicros', title: 'speaker', digits: 1 },
    { key: 'p50Ms', title: 'p50 ms', digits: 1 },
    { key: 'p99Ms', title: 'p99 ms', digits: 1 },
    { key: 'deltasPerFrame', title: 'deltas per frame', digits: 2 },
  ],
  goals: [
    { text: 'CPU per event with 10,000 tasks, of that with 10', atMost: 1.3, value: grown('allMicros', tasksRow(10_000), tasksRow(10)) },
    {
      text: 'server CPU per delivery with 10,000 viewers, of that with 100',
      atMost: 1.3,
      value: grown('serverMicros', viewersRow(10_000), viewersRow(100)),
    },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: 10_000 })
  const rivulet = contestantOf(platform, bench.world)
  const results: Results = new Map()
  try {
    await streamOnce(bench, rivulet, { tasks: scaled(bench, 100), deltas: scaled(bench, 100), perSecond: 50 })
    for (const viewers of viewerCounts) {
      const perSecond = deliveriesPerSecond / viewers
      results.set(viewersRow(viewers), await measure({ tasks: 1, deltas: perSecond * seconds, perSecond }, scaled(bench, viewers)))
    }
    for (const tasks of taskCounts) {
      const perSecond = eventsPerSecond / tasks
      results.set(tasksRow(tasks), await measure({ tasks: scaled(bench, tasks), deltas: Math.max(1, perSecond * seconds), perSecond }, 1))
    }
    return results
  } finally {
    await platform.close()
  }

  async function measure(plan: Plan, viewersEach: number): Promise<Figures> {
    const contestant = plan.tasks < 10_000 ? rivulet : withoutEnd(rivulet)
    const { received, cpu } = await streamOnce(bench, contestant, { ...plan, deltas: scaled(bench, plan.deltas) }, viewersEach)
    // The start of a message is an event, too: with ten thousand tasks of a few deltas each, it is a large share.
    const events = received.deliveries + plan.tasks * viewersEach
    const micros = (used: number) => (used / events) * 1e6
    return {
      allMicros: micros(cpu.server + cpu.redis + cpu.speaker),
      serverMicros: micros(cpu.server),
      redisMicros: micros(cpu.redis),
      speakerMicros: micros(cpu.speaker),
      p50Ms: received.p50Ms,
      p99Ms: received.p99Ms,
      deltasPerFrame: received.deliveries / received.frames,
    }
  }
}

/** Skips the end of ten thousand turns, which would take as long as the rest. */
function withoutEnd(contestant: Contestant): Contestant {
  return { ...contestant, prepare: async plan => ({ ...(await contestant.prepare(plan)), clear: async () => {} }) }
}

function tasksRow(tasks: number): string {
  return `${tasks.toLocaleString('en-US')} tasks × 1 viewer`
}

function viewersRow(viewers: number): string {
  return `1 task × ${viewers.toLocaleString('en-US')} viewers`
}

function grown(key: string, large: string, small: string): (results: Results) => number | null {
  return results => ratio(results, key, large, small)
}
