/** The limits of each part alone, from one Node process: BullMQ, Postgres, Redis, and Rivulet's appends to logs. */
import { randomUUID } from 'node:crypto'
import { connectRedis, createKeys, createLogAnnouncer, createLogWriter, whenReady } from '@rivulet/broker'
import { delta } from '@rivulet/protocol'
import { createAppender } from '@rivulet/worker/appender'
import { createTurnWriter } from '@rivulet/worker/turn-writer'
import { Queue, Worker } from 'bullmq'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import pLimit from 'p-limit'
import pg from 'pg'
import { handleRequests } from '../child.ts'
import { eventOf, speak, textOf } from '../measure/speech.ts'

type Load = { count: number; inFlight: number }
type Appends = { count: number; perCall: number }

const [redisUrl = '', databaseUrl = ''] = process.argv.slice(2)
const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })
const queue = new Queue('bench-limits', { connection: redis })
await pool.query(
  'create table if not exists bench_limits (id uuid primary key, params jsonb not null, at timestamptz not null default now())',
)

handleRequests({
  addAndCommit: (load: Load) =>
    perSecond(load, async () => {
      await commit()
      await add()
    }),
  listen,
  add: (load: Load) => perSecond(load, add),
  commit: (load: Load) => perSecond(load, commit),
  process: processJobs,
  append: appendToLogs,
  write: writeInTurns,
  xadd: addToStreams,
  pipeline: pipelineToStreams,
})
process.on('SIGTERM', () => process.exit(0))

/** A route that does the same for each POST, without checks. Returns its URL. */
async function listen(): Promise<string> {
  const app = fastify()
  app.post('/', async () => {
    await commit()
    await add()
    return {}
  })
  return app.listen({ host: '127.0.0.1', port: 0 })
}

async function commit(): Promise<void> {
  await pool.query('insert into bench_limits (id, params) values ($1, $2)', [randomUUID(), { run: 'limits', task: 1 }])
}

async function add(): Promise<void> {
  await queue.add('turn', {}, { jobId: randomUUID(), removeOnComplete: true })
}

async function perSecond(load: Load, act: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await repeat(load, act)
  const seconds = (performance.now() - began) / 1_000
  await queue.obliterate({ force: true })
  return load.count / seconds
}

async function repeat({ count, inFlight }: Load, act: () => Promise<void>): Promise<void> {
  const few = pLimit(inFlight)
  await Promise.all(Array.from({ length: count }, () => few(act)))
}

/** The rate of empty jobs, added one by one, through one worker; and the time until a single job starts on an idle queue. */
async function processJobs({ count, inFlight }: Load): Promise<{ perSecond: number; beginP50Ms: number }> {
  const blocking = new Redis(redisUrl, { maxRetriesPerRequest: null })
  let onStart: (began: number) => void = () => {}
  let done = 0
  const began = performance.now()
  const worker = new Worker('bench-limits', async () => onStart(performance.now()), { connection: blocking, concurrency: inFlight })
  const processed = new Promise<void>(resolve => {
    worker.on('completed', () => {
      done += 1
      if (done === count) resolve()
    })
  })
  await Promise.all([processed, repeat({ count, inFlight }, add)])
  const rate = (count / (performance.now() - began)) * 1_000
  const waits: number[] = []
  for (let i = 0; i < Math.min(count, 100); i += 1) {
    const added = performance.now()
    const started = new Promise<number>(resolve => {
      onStart = resolve
    })
    await queue.add('turn', {}, { removeOnComplete: true })
    waits.push((await started) - added)
  }
  await worker.close()
  blocking.disconnect()
  return { perSecond: rate, beginP50Ms: waits.toSorted((a, b) => a - b)[Math.floor(waits.length / 2)] ?? 0 }
}

/** Sequential calls, each with one entry for each of `perCall` logs, fence and publish included. */
async function appendToLogs({ count, perCall }: Appends): Promise<number> {
  const { writer, tasks, close } = await openLogs(perCall)
  const calls = Math.ceil(count / perCall)
  const began = performance.now()
  for (let call = 1; call <= calls; call += 1) {
    const text = textOf(call)
    const appends = tasks.map(task => ({ task, epoch: 1, first: call, entries: [{ index: 0, json: eventOf(task, call, text) }] }))
    const outcomes = await writer.append(appends)
    const failed = outcomes.find(outcome => outcome !== 'ok')
    if (failed) throw new Error(`An append returned ${failed}`)
  }
  const rate = (calls * perCall * 1_000) / (performance.now() - began)
  await close()
  return rate
}

/** `perCall` turns at full speed in one worker: each checks and merges its deltas, and all share the worker's appender. */
async function writeInTurns({ count, perCall }: Appends): Promise<number> {
  const { writer: log, tasks, close } = await openLogs(perCall)
  const appender = createAppender({ log })
  const plan = { tasks: perCall, deltas: Math.ceil(count / perCall), perSecond: null }
  const began = performance.now()
  await Promise.all(
    tasks.map(async (task, place) => {
      const writer = createTurnWriter({
        ...{ turn: { task, turn: 1, attempt: 1, firstIndex: 0 }, epoch: 1, appender },
        ...{ askReopen: async () => null, onFenced: () => {} },
        onLost: reason => {
          throw new Error('A turn was lost', { cause: reason })
        },
      })
      for await (const { text } of speak(plan, place)) await writer.write(delta(0, text))
      await writer.drain()
    }),
  )
  const rate = (plan.tasks * plan.deltas * 1_000) / (performance.now() - began)
  await close()
  return rate
}

async function openLogs(count: number) {
  const connection = connectRedis('command', { url: redisUrl, onError: () => {} })
  await whenReady(connection)
  const keys = createKeys(`bench-${randomUUID().slice(0, 8)}`)
  const writer = createLogWriter({ redis: connection, keys, maxBytes: 2 ** 40 })
  const announcer = createLogAnnouncer({ redis: connection, keys, retentionMs: 60_000 })
  const tasks = Array.from({ length: count }, () => randomUUID())
  for (const task of tasks) await announcer.announce({ task, epoch: 1, whole: true, running: true, entries: [] })
  return { writer, tasks, close }

  async function close(): Promise<void> {
    for (const task of tasks) await announcer.remove(task)
    connection.disconnect()
  }
}

/** Each task awaits its XADD, as in the straightforward way. */
async function addToStreams({ count, perCall }: Appends): Promise<number> {
  const streams = Array.from({ length: perCall }, () => randomUUID())
  const rounds = Math.ceil(count / perCall)
  const began = performance.now()
  await Promise.all(
    streams.map(async stream => {
      for (let i = 1; i <= rounds; i += 1) await redis.xadd(stream, '*', 'index', '0', 'event', eventOf(stream, i, textOf(i)))
    }),
  )
  const rate = (rounds * perCall * 1_000) / (performance.now() - began)
  await redis.unlink(...streams)
  return rate
}

async function pipelineToStreams({ count, perCall }: Appends): Promise<number> {
  const stream = randomUUID()
  const rounds = Math.ceil(count / perCall)
  const began = performance.now()
  for (let i = 1; i <= rounds; i += 1) {
    const pipeline = redis.pipeline()
    for (let j = 0; j < perCall; j += 1) pipeline.xadd(stream, '*', 'index', '0', 'event', eventOf(stream, i, textOf(i)))
    await pipeline.exec()
  }
  const rate = (rounds * perCall * 1_000) / (performance.now() - began)
  await redis.unlink(stream)
  return rate
}
