/** How many agents can speak at 50 deltas/s before the 99th percentile passes 100 ms, for contestants that keep what was said. The number to plan with. */
import { type Bench, type Results, scaled, streamOnce, type Workload } from '../../bench.ts'
import type { Contestant } from '../../contestant.ts'

const maxP99Ms = 100
/** Of the whole run. */
const maxDelaySeconds = 0.5
/** The count is exact to this factor. */
const precision = 1.15
/** Viewers in the first step: every contestant serves so many, and the next steps overload none by more than the factor 2. */
const firstViewers = { slow: 50, others: 100 }
/** As many turns as the worker of the bench runs at once. */
const most = 1_000

export const capacity: Workload = {
  name: 'capacity',
  title: '13. Capacity: agents at 50 deltas/s each before p99 passes 100 ms (one round)',
  columns: [
    { key: 'agents', title: 'with one viewer each' },
    { key: 'agentsOfTen', title: 'with ten viewers each' },
  ],
  goals: [
    { text: 'agents with one viewer each, of the best other that keeps a log', atLeast: 2, value: ofBest('agents') },
    { text: 'agents with ten viewers each, of the best other that keeps a log', atLeast: 2, value: ofBest('agentsOfTen') },
  ],
  run,
}

/** The bare contestants keep nothing, and nchan only a buffer in memory. */
function keepsLog({ name }: Contestant): boolean {
  return !name.startsWith('bare ') && name !== 'nginx nchan'
}

function ofBest(key: string): (results: Results) => number | null {
  return results => {
    const others = Array.from(results, ([name, figures]) => (name === 'Rivulet' ? undefined : figures[key])).flatMap(one => one ?? [])
    const own = results.get('Rivulet')?.[key]
    return own === undefined || others.length === 0 ? null : own / Math.max(...others)
  }
}

async function run(bench: Bench): Promise<Results> {
  const results: Results = new Map()
  for (const contestant of bench.contestants.filter(keepsLog)) {
    const [agents, agentsOfTen] = [await capacityOf(bench, contestant, 1), await capacityOf(bench, contestant, 10)]
    results.set(contestant.name, { agents, agentsOfTen })
  }
  return results
}

/** Doubles the agents until there are too many, and then halves the distance. */
async function capacityOf(bench: Bench, contestant: Contestant, viewersEach: number): Promise<number> {
  const limit = Math.min(scaled(bench, most), contestant.mostTasks ?? most)
  const first = firstViewers[contestant.isSlow ? 'slow' : 'others'] / viewersEach
  let [held, tooMany] = [0, Number.POSITIVE_INFINITY]
  for (let tasks = scaled(bench, first); held < limit && tooMany / held > precision; tasks = next()) {
    if (await holds(bench, contestant, tasks, viewersEach)) held = tasks
    else tooMany = tasks
    if (held === 0 && tooMany <= 1) return 0
  }
  return held

  function next(): number {
    if (tooMany === Number.POSITIVE_INFINITY) return Math.min(held * 2, limit)
    return Math.max(1, Math.round((held + tooMany) / 2))
  }
}

/** A contestant that loses a delta, ends a stream, or lets its agents speak more slowly than they want, has too many. */
async function holds(bench: Bench, contestant: Contestant, tasks: number, viewersEach: number): Promise<boolean> {
  const plan = { tasks, deltas: scaled(bench, 100), perSecond: 50 }
  try {
    const { received, seconds } = await streamOnce(bench, contestant, plan, viewersEach)
    return received.p99Ms <= maxP99Ms && seconds <= plan.deltas / plan.perSecond + maxDelaySeconds
  } catch {
    return false
  }
}
