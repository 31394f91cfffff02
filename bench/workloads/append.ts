/** Appends to logs from one Node process, fence and publish included, compared with bare Redis: single entries, and deltas merged by turns. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Bench, type Figures, interleave, type Results, ratio, scaled, type Workload } from '../bench.ts'
import { startChild } from '../child.ts'
import { eventOf, textOf } from '../measure/speech.ts'

const redisBenchmark = 'redis-benchmark -P 100, XADD'
const entries = 'Rivulet, entries of 100 tasks'
const deltas = 'Rivulet, deltas of 100 turns, merged by their writers'

export const append: Workload = {
  name: 'append',
  title: '5b. Appends to logs',
  columns: [{ key: 'perSecond', title: 'per second' }],
  goals: [
    {
      text: 'deltas appended/s, of redis-benchmark -P 100',
      atLeast: 0.5,
      value: results => ratio(results, 'perSecond', deltas, redisBenchmark),
    },
    {
      text: 'entries appended/s, none of them merged, of redis-benchmark -P 100',
      atLeast: 0.5,
      value: results => ratio(results, 'perSecond', entries, redisBenchmark),
    },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const { redisUrl, databaseUrl } = bench.world
  const bare = await startChild('programs/limits.ts', { args: [redisUrl, databaseUrl] })
  const ask = async (name: string, count: number, perCall: number): Promise<Figures> => ({
    perSecond: await bare.ask(name, { count: scaled(bench, count), perCall }),
  })
  try {
    return await interleave(
      bench,
      [
        { name: redisBenchmark, measure: () => benchmarkRedis(redisUrl, scaled(bench, 300_000)) },
        { name: 'bare ioredis XADD, awaited, one task', measure: () => ask('xadd', 10_000, 1) },
        { name: 'bare ioredis XADD, awaited, 100 tasks', measure: () => ask('xadd', 60_000, 100) },
        { name: 'bare ioredis XADD, pipelines of 100', measure: () => ask('pipeline', 100_000, 100) },
        { name: 'Rivulet, entries of one task', measure: () => ask('append', 10_000, 1) },
        { name: entries, measure: () => ask('append', 100_000, 100) },
        { name: deltas, measure: () => ask('write', 300_000, 100) },
      ],
      row => row.measure(),
    )
  } finally {
    await bare.stop()
  }
}

/** Needs redis-benchmark, which comes with Redis. */
async function benchmarkRedis(url: string, count: number): Promise<Figures> {
  const stream = `bench-${Date.now()}`
  const command = ['XADD', stream, '*', 'index', '0', 'event', eventOf(stream, 1, textOf(1))]
  const { port, password } = new URL(url)
  const server = ['-p', port, ...(password ? ['-a', password] : [])]
  const { stdout } = await promisify(execFile)('redis-benchmark', [...server, '-P', '100', '-n', String(count), '-q', ...command])
  await promisify(execFile)('redis-cli', [...server, 'UNLINK', stream])
  const perSecond = Number(/([\d.]+) requests per second/.exec(stdout)?.[1])
  if (!Number.isFinite(perSecond)) throw new Error(`redis-benchmark printed ${stdout.slice(-200)}`)
  return { perSecond }
}
