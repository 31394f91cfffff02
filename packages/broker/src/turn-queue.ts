/**
 * The queue of turns: one BullMQ queue for each agent. It handles dispatch, delay, priority and concurrency, and holds only ids.
 *
 * A job is only a hint: the claim in Postgres decides which worker runs a turn. So a job may be lost, delivered twice or late without harm.
 * BullMQ neither retries a job nor gives up on one.
 */
import type { TurnId } from '@rivulet/protocol'
import { DelayedError, type Job, Queue, Worker } from 'bullmq'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export type Dispatch = {
  turnId: TurnId
  /** The name of the queue. */
  agent: string
  /** How often the turn was dispatched before; a new dispatch is a new job. */
  dispatch: number
  delayMs: number
  /** 0 to 100, higher first. */
  priority: number
  /** Lower first, among turns of the same priority: how many turns its key has before it, at least. */
  rank?: number
}

export type DispatchName = Pick<Dispatch, 'turnId' | 'agent' | 'dispatch'>

/** What becomes of a job: it is done, or it goes back to the queue for so long. */
export type JobEnd = 'done' | { backInMs: number }

export type TurnQueue = {
  enqueue(dispatches: readonly Dispatch[]): Promise<void>
  /** Which of these dispatches the queue still knows. */
  find(dispatches: readonly DispatchName[]): Promise<boolean[]>
  /** Ends the delay of those that are still delayed, and returns which were: by the clock of a worker that is behind, they are not due yet. */
  endDelay(dispatches: readonly DispatchName[]): Promise<boolean[]>
  close(): Promise<void>
}

export type TurnConsumer = { setConcurrency(turns: number): void; pause(): Promise<void>; close(): Promise<void> }

/** The id of a job names its turn. Jobs that 0.1 enqueued are found by it, too. */
type JobData = Record<string, never>

/** How long a silent worker keeps its job. If the job returns to the queue too early, the next worker finds its turn claimed. */
const jobLockMs = 5_000

/** `redis` is a `command` connection. The caller closes it. */
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
  return { enqueue, find, endDelay, close }

  async function enqueue(dispatches: readonly Dispatch[]): Promise<void> {
    const agents = [...new Set(dispatches.map(({ agent }) => agent))]
    // A delay counts from the time of Redis, because the clock of this process may be off.
    const from = dispatches.some(({ delayMs }) => delayMs > 0) ? await readTimeMs() : undefined
    const jobs = (agent: string) => dispatches.filter(dispatch => dispatch.agent === agent).map(dispatch => jobOf(dispatch, from))
    await Promise.all(agents.map(agent => queueOf(agent).addBulk(jobs(agent))))
  }

  async function readTimeMs(): Promise<number> {
    const [seconds = 0, microseconds = 0] = (await redis.time()).map(Number)
    return seconds * 1_000 + Math.floor(microseconds / 1_000)
  }

  async function endDelay(dispatches: readonly DispatchName[]): Promise<boolean[]> {
    return Promise.all(dispatches.map(endDelayOf))
  }

  async function endDelayOf(dispatch: DispatchName): Promise<boolean> {
    const queue = queueOf(dispatch.agent)
    const id = jobId(dispatch)
    if ((await redis.zscore(queue.toKey('delayed'), id)) === null) return false
    const job = await queue.getJob(id)
    // One that a worker has taken in between is no longer delayed.
    return job ? job.promote().then(yes, no) : false
  }

  async function find(dispatches: readonly DispatchName[]): Promise<boolean[]> {
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
 * Takes the turns of a queue, up to `concurrency` at a time. `run` says what becomes of the job: where the process has no room for its turn after
 * all, or the turn is not due yet, it goes back to the queue. `redis` is a `blocking` connection; it stays the caller's.
 */
export function createTurnConsumer({
  queue,
  redis,
  keys,
  concurrency,
  run,
  onError,
}: {
  queue: string
  redis: RedisConnection
  keys: Keys
  concurrency: number
  run: (turnId: TurnId) => Promise<JobEnd>
  onError: (error: Error) => void
}): TurnConsumer {
  let active = 0
  let limit = concurrency
  const worker = new Worker<JobData>(queue, process, {
    connection: redis,
    prefix: keys.queuePrefix,
    concurrency,
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    // A worker that dies between taking a job and claiming its turn leaves no lease that could expire, so the lock of the job must expire.
    lockDuration: jobLockMs,
    stalledInterval: jobLockMs / 2,
    // After a connection error, which a cluster returns while it replaces a master. BullMQ's default is 15 s.
    runRetryDelay: 1_000,
  })
  worker.on('error', onError)
  return { setConcurrency, pause: () => worker.pause(true), close: () => worker.close() }

  async function process(job: Job<JobData>, token?: string): Promise<void> {
    active += 1
    try {
      const end = await run(turnIdOf(job))
      if (end === 'done') return
      // To the delayed ones also for a millisecond: among those that wait it would wake no worker up. By the clock of this process, because that
      // is what BullMQ compares it with: a clock that is ahead would otherwise bring the job back at once, again and again.
      await job.moveToDelayed(Date.now() + end.backInMs, token)
      throw new DelayedError()
    } finally {
      active -= 1
    }
  }

  function setConcurrency(turns: number): void {
    const wasFull = active >= limit
    const wasPaused = limit < 1
    limit = turns
    worker.concurrency = Math.max(1, turns)
    // BullMQ reads its limit only when a job ends, and does not accept a limit of 0. Pausing handles both.
    if (turns < 1 || wasPaused || (wasFull && active < turns)) worker.pause(true).then(resume).catch(onError)
  }

  async function resume(): Promise<void> {
    if (limit > 0) await worker.resume()
  }
}

function jobOf(dispatch: Dispatch, timestamp: number | undefined): { name: string; data: JobData; opts: NonNullable<Job['opts']> } {
  const { delayMs, priority, rank = 0 } = dispatch
  const when = { delay: Math.ceil(delayMs), ...(timestamp !== undefined && { timestamp }) }
  return {
    name: 'turn',
    data: {},
    opts: {
      jobId: jobId(dispatch),
      ...when,
      priority: (101 - priority) * ranks + Math.min(rank, ranks - 1),
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: true,
    },
  }
}

/** How many ranks a priority has: BullMQ accepts numbers below 2 ** 21. */
const ranks = 20_000

const yes = () => true
const no = () => false

function jobId({ turnId, dispatch }: Pick<Dispatch, 'turnId' | 'dispatch'>): string {
  return `${turnId}_${dispatch}`
}

function turnIdOf({ id = '' }: Job<JobData>): TurnId {
  return id.slice(0, id.lastIndexOf('_')) as TurnId
}
