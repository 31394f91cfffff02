/**
 * Turns on their way to workers: one BullMQ queue for each agent. It carries dispatch, delay, priority and concurrency, and holds only ids.
 *
 * A job is a hint, not a right: the claim in Postgres decides who runs a turn. So a job may be lost, delivered twice or late without harm;
 * BullMQ neither retries nor gives up on one.
 */
import { DelayedError, type Job, Queue, Worker } from 'bullmq'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export type Dispatch = {
  turn: string
  agent: string
  /** How often the turn was dispatched before; a new dispatch is a new job. */
  dispatch: number
  delayMs: number
  /** 0 to 100, higher first. */
  priority: number
}

export type TurnQueue = {
  enqueue(dispatches: readonly Dispatch[]): Promise<void>
  /** Which of these dispatches the queue still knows. */
  find(dispatches: readonly Pick<Dispatch, 'turn' | 'agent' | 'dispatch'>[]): Promise<boolean[]>
  close(): Promise<void>
}

export type TurnConsumer = { setConcurrency(turns: number): void; pause(): Promise<void>; close(): Promise<void> }

type JobData = { turn: string }

/** How long a job stays with a worker that is not heard of. A job that comes back too early finds its turn claimed. */
const jobLockMs = 5_000

/** `redis` is a `command` connection; it stays the caller's. */
export function createTurnQueue({
  redis,
  keys,
  onError,
}: {
  redis: RedisConnection
  keys: Keys
  onError: (error: Error) => void
}): TurnQueue {
  const queues = new Map<string, Queue<JobData>>()
  return { enqueue, find, close }

  async function enqueue(dispatches: readonly Dispatch[]): Promise<void> {
    const agents = [...new Set(dispatches.map(({ agent }) => agent))]
    await Promise.all(agents.map(agent => queueOf(agent).addBulk(dispatches.filter(dispatch => dispatch.agent === agent).map(jobOf))))
  }

  async function find(dispatches: readonly Pick<Dispatch, 'turn' | 'agent' | 'dispatch'>[]): Promise<boolean[]> {
    return Promise.all(dispatches.map(async dispatch => (await redis.exists(queueOf(dispatch.agent).toKey(jobId(dispatch)))) === 1))
  }

  async function close(): Promise<void> {
    await Promise.all(Array.from(queues.values(), queue => queue.close()))
  }

  function queueOf(agent: string): Queue<JobData> {
    const known = queues.get(agent)
    if (known) return known
    const queue = new Queue<JobData>(agent, { connection: redis, prefix: keys.queuePrefix, skipMetasUpdate: true })
    queue.on('error', onError)
    queues.set(agent, queue)
    return queue
  }
}

/**
 * Takes an agent's turns, up to `concurrency` at a time. `run` answers false where there is no room for a turn after all: then it goes back to
 * the queue, for whoever has room. `redis` is a `blocking` connection; it stays the caller's.
 */
export function createTurnConsumer({
  agent,
  redis,
  keys,
  concurrency,
  run,
  onError,
}: {
  agent: string
  redis: RedisConnection
  keys: Keys
  concurrency: number
  run: (turn: string) => Promise<boolean>
  onError: (error: Error) => void
}): TurnConsumer {
  let active = 0
  let limit = concurrency
  const worker = new Worker<JobData>(agent, process, {
    connection: redis,
    prefix: keys.queuePrefix,
    concurrency,
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    // A worker that dies between taking a job and claiming its turn leaves no lease behind that could end: its job has to come back by itself.
    lockDuration: jobLockMs,
    stalledInterval: jobLockMs / 2,
  })
  worker.on('error', onError)
  return { setConcurrency, pause: () => worker.pause(true), close: () => worker.close() }

  async function process(job: Job<JobData>, token?: string): Promise<void> {
    active += 1
    try {
      if (await run(job.data.turn)) return
      // Not to those that wait: that would wake nobody up.
      await job.moveToDelayed(Date.now() + 1, token)
      throw new DelayedError()
    } finally {
      active -= 1
    }
  }

  function setConcurrency(turns: number): void {
    const wasFull = active >= limit
    limit = turns
    worker.concurrency = Math.max(1, turns)
    // BullMQ looks at its limit only when one of its jobs ends, and knows no limit of nothing: pausing does both.
    if (turns < 1 || (wasFull && active < turns)) worker.pause(true).then(resume).catch(onError)
  }

  async function resume(): Promise<void> {
    if (limit > 0) await worker.resume()
  }
}

function jobOf(dispatch: Dispatch): { name: string; data: JobData; opts: NonNullable<Job['opts']> } {
  const { turn, delayMs, priority } = dispatch
  return {
    name: 'turn',
    data: { turn },
    opts: { jobId: jobId(dispatch), delay: delayMs, priority: 101 - priority, attempts: 1, removeOnComplete: true, removeOnFail: true },
  }
}

function jobId({ turn, dispatch }: Pick<Dispatch, 'turn' | 'dispatch'>): string {
  return `${turn}_${dispatch}`
}
