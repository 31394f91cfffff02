/** Four customers send one task a second each: alone, and beside a fifth that has sent 10,000 tasks for the same 20 slots. */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { type Bench, type Figures, interleave, median, type Results, ratio, scaled, type Workload } from '../bench.ts'
import { type Platform, startPlatform } from '../platform.ts'

const slots = 20
const customers = ['ada', 'grace', 'lin', 'zoe']
const alone = 'alone'
const beside = 'beside a flood of 10,000'
/** A turn of a second: 20 deltas, 20 a second. */
const params = { task: 0, plan: { tasks: 1, deltas: 20, perSecond: 20 } }

export const fairness: Workload = {
  name: 'fairness',
  title: '11. Four customers, one task a second each, of one second; 20 slots (one round)',
  columns: [
    { key: 'endP50Ms', title: 'POST to end, p50 ms' },
    { key: 'endP99Ms', title: 'p99 ms' },
    { key: 'startP50Ms', title: 'POST to start, p50 ms' },
    { key: 'startP99Ms', title: 'p99 ms' },
    { key: 'floodPerSecond', title: 'flood turns/s', digits: 1 },
  ],
  goals: [
    { text: 'POST to end beside a flood, of that alone', atMost: 1.5, value: results => ratio(results, 'endP50Ms', beside, alone) },
    { text: 'POST to start beside a flood, of that alone', atMost: 1.5, value: results => ratio(results, 'startP50Ms', beside, alone) },
    {
      text: 'flood turns a second, of the 13 slots that it may hold',
      atLeast: 12,
      value: results => results.get(beside)?.floodPerSecond ?? null,
    },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const rows = [
    { name: alone, flood: 0 },
    { name: beside, flood: scaled(bench, 10_000) },
  ]
  return interleave({ ...bench, rounds: 1 }, rows, ({ flood }) => measure(bench, flood))
}

async function measure(bench: Bench, flood: number): Promise<Figures> {
  const platform = await startPlatform(bench.world, { concurrency: slots })
  try {
    await Promise.all(Array.from({ length: flood }, () => send(platform, 'flood')))
    if (flood > slots) await until('all slots are taken', async () => (await countOf(platform, "status = 'running'")) >= slots)
    const endedBefore = await countOf(platform, "status = 'completed'")
    const seconds = Math.max(5, scaled(bench, 15))
    for (let second = 0; second < seconds; second += 1) {
      await Promise.all([...customers.map(customer => send(platform, customer)), sleep(1_000)])
    }
    const ended = (await countOf(platform, "status = 'completed' and concurrency_key = 'flood'")) - endedBefore
    await until('the customers have their responses', async () => (await countOf(platform, isOpen)) === 0, { timeoutMs: 120_000 })
    return { ...(await waitsOf(platform)), floodPerSecond: flood === 0 ? 0 : ended / seconds }
  } finally {
    await platform.close()
  }
}

const isOpen = "status not in ('completed', 'failed', 'canceled') and concurrency_key <> 'flood'"

function send(platform: Platform, concurrencyKey: string): Promise<unknown> {
  return platform.post('/v1/tasks', { agent: 'speaker', params, concurrencyKey })
}

async function countOf({ pg }: Platform, condition: string): Promise<number> {
  const { rows } = await pg.query<{ count: string }>(`select count(*) from tasks where ${condition}`)
  return Number(rows[0]?.count)
}

/** By the clock of Postgres. */
async function waitsOf({ pg }: Platform): Promise<Figures> {
  const { rows } = await pg.query<{ start: number; end: number }>(`
    select extract(epoch from turns.started_at - tasks.created_at)::float8 * 1000 as start,
      extract(epoch from turns.finished_at - tasks.created_at)::float8 * 1000 as end
    from turns join tasks on tasks.id = turns.task where tasks.concurrency_key <> 'flood'`)
  const starts = rows.map(({ start }) => start).sort((a, b) => a - b)
  const ends = rows.map(({ end }) => end).sort((a, b) => a - b)
  const last = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
  return { endP50Ms: median(ends), endP99Ms: last(ends), startP50Ms: median(starts), startP99Ms: last(starts) }
}
