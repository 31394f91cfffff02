/**
 * A worker process: takes turns of its agents from the queue, up to `concurrency` at a time over all agents, and keeps their leases alive.
 *
 * It has no database credentials. Its transport is Redis or HTTP, for the queue and the log; everything in Postgres is HTTP.
 */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobEnd } from '@rivulet/broker'
import { RivuletError, type TurnId } from '@rivulet/protocol'
import type { Tracer } from '@rivulet/runtime/trace'
import manifest from '../package.json' with { type: 'json' }
import type { AgentDefinition } from './define-agent.ts'
import { fullTextOf } from './failure.ts'
import { greetServer } from './greeting.ts'
import { createHeldTurns } from './held-turns.ts'
import { createIsolatedRuns, decodeIsolatedTurn, type IsolatedTurn, type Isolation } from './isolation.ts'
import { startLeaseThread } from './lease-thread.ts'
import { createLineLogger, type Logger } from './logger.ts'
import { createServerCalls } from './server-calls.ts'
import { createSlots } from './slots.ts'
import { createHttpTransport } from './transport/http-transport.ts'
import { createRedisTransport } from './transport/redis-transport.ts'
import type { Intake, Transport, TransportEvents } from './transport/transport.ts'
import { type RunTurnDeps, runTurn } from './turn/run-turn.ts'
import { surviveLateWords } from './turn/turn-over.ts'
import type { WorkerObserver } from './worker-observer.ts'
import { createAppender } from './writer/appender.ts'

export type WorkerOptions = {
  agents: readonly AgentDefinition[]
  /** Required with Redis as transport. */
  redisUrl?: string | undefined
  /** How this process gets its turns and writes their output. With `http` it needs the API alone, and opens no connection to Redis. Default `redis`. */
  transport?: 'redis' | 'http' | undefined
  /** The API, as this process reaches it; several, separated by commas, so that it keeps its turns when one of them is gone. */
  url: string
  key?: string | undefined
  /** Default: JSON lines on stdout, from `info` on. */
  log?: Logger | undefined
  /** The beginning of this worker's id. Tenants that may use its agents see it, so it should not name a machine. Default `worker`. */
  name?: string | undefined
  /** The release of your agents, for the list of workers. Default: the version of this package. */
  version?: string | undefined
  /** Turns at a time. Default 20. */
  concurrency?: number
  /** How often leases are renewed, by a thread of their own. Default 5,000. */
  heartbeatMs?: number
  /**
   * How long a turn may block the event loop, before this process releases its other turns and exits with code 70; its supervisor has to start it
   * again. Default 30,000; null: no limit.
   */
  watchdogMs?: number | null | undefined
  /** How long a Redis that is out of memory is waited for, before the attempt fails with `stream_backpressure`. Default 30,000. */
  backpressureMs?: number | undefined
  /** How long running turns may go on after `stop`, before this worker releases them for others. Default 30,000. */
  drainMs?: number | undefined
  redisPrefix?: string
  /** Collects spans. Default: no collector; the trace id of a turn is still propagated. */
  tracer?: Tracer | undefined
  /** Gets what the worker measures, for metrics. */
  observer?: WorkerObserver | undefined
  /** How a turn whose workers died gets a process of its own. Without it, it runs among the others. */
  isolation?: Isolation
}

export type Worker = {
  id: string
  /** Rejects when this worker must not go on, with a sentence that says what to change. It has stopped by itself then. */
  refused: Promise<never>
  /** Takes nothing new, lets running turns go on for the grace period, gives back the rest. */
  stop(): Promise<void>
}

/** How often a worker asks Redis whether it still has the logs of its turns. An API checks its feeds as often. */
const logCheckMs = 15_000

/** How long consumers without a turn may take to close. */
const closingMs = 3_000

export function createWorker(options: WorkerOptions): Worker {
  const {
    agents,
    redisUrl,
    transport: kind = 'redis',
    url,
    key,
    log = createLineLogger(),
    name = 'worker',
    version = manifest.version,
    concurrency = 20,
    heartbeatMs = 5_000,
    watchdogMs = 30_000,
    drainMs = 30_000,
    redisPrefix,
    isolation,
    backpressureMs,
    tracer,
    observer,
  } = options
  const duplicate = agents.find(({ name }, i) => agents.findIndex(other => other.name === name) !== i)
  if (duplicate) throw new RivuletError('validation_failed', `Two agents are named ${duplicate.name}`)

  const id = `${name}-${process.pid}-${randomUUID().slice(0, 8)}`
  const server = createServerCalls({ url, key })
  const transport = openTransport({
    onOver: turnId => {
      for (const turn of held.runsOf(turnId)) turn.lose()
    },
    onAnswered: turnId => {
      for (const turn of held.runsOf(turnId)) turn.wake()
    },
    onReconnect: () => held.checkLogs(),
  })
  const appender = createAppender({ log: transport })
  const stopping = new AbortController()
  const leaving = new AbortController()
  // All turns of the process may wait with these at once, and each takes its listener off again: more than ten of them are no leak.
  setMaxListeners(0, stopping.signal, leaving.signal)
  const limitOf = (agent: string) => agents.find(({ name }) => name === agent)?.concurrency ?? concurrency
  const slots = createSlots(concurrency, limitOf, () => intake?.resize())
  let intake: Intake | null = null
  let stopped: Promise<void> | null = null
  /** Turns that are taken: claimed, running, or running in a process of their own. */
  let jobs = 0
  const isolated = isolation?.turnId ? decodeIsolatedTurn(isolation.turnId) : null
  const announced = agents.map(({ name, description, settings }) => ({ name, description, ...settings }))
  const hello = { worker: id, takesQueues: true as const, version, slots: concurrency, agents: announced }
  const leases = startLeaseThread({
    ...{ url, key, worker: id, hello: isolated ? null : hello, heartbeatMs, watchdogMs },
    onBeatFailed: reason => log.warn({ reason }, 'heartbeat failed'),
    onQueues: queues => intake?.follow(queues),
  })
  const held = createHeldTurns(leases)
  const logChecks = setInterval(held.checkLogs, logCheckMs)
  const runApart = isolation && createIsolatedRuns(isolation, stopping.signal)
  const started = isolated ? runAlone(isolated) : start()
  let reject: (error: unknown) => void = () => {}
  const refused = new Promise<never>((_, rejectIt) => {
    reject = rejectIt
  })
  refused.catch(() => {})
  for (const ended of [started, leases.failed]) ended.catch(refuse)
  const stopSurviving = surviveLateWords(log)

  return { id, refused, stop }

  async function start(): Promise<void> {
    // Register first: callers cannot create tasks for an unknown agent, and a turn that is taken before could not be claimed.
    const queues = await greetServer(hello, { server, log, stopping: stopping.signal })
    if (stopping.signal.aborted) return
    const warning = await transport.ready(stopping.signal)
    if (warning) log.warn({}, warning)
    const names = agents.map(({ name }) => name)
    intake = transport.take({ agents: names, queues }, slots.roomOf, run)
    log.info({ worker: id, agents: names, concurrency }, 'worker is ready')
  }

  function openTransport(events: TransportEvents): Transport {
    if (kind === 'http') return createHttpTransport({ worker: id, server, log }, events)
    if (!redisUrl) throw new RivuletError('validation_failed', 'A worker needs redisUrl, or the transport http')
    return createRedisTransport({ worker: id, redisUrl, redisPrefix, log }, events)
  }

  async function run(name: string, turnId: TurnId): Promise<JobEnd> {
    const agent = agents.find(known => known.name === name)
    let end: JobEnd = { backInMs: 1 }
    // A stopping worker has no capacity either, so its jobs go to other workers.
    if (!agent || stopping.signal.aborted) return end
    await slots.use(name, async () => {
      jobs += 1
      end = await take(agent, turnId, { runApart }).finally(() => {
        jobs -= 1
      })
    })
    return end
  }

  /** This process is there for one turn only. */
  async function runAlone({ agent: name, turnId, claimId }: IsolatedTurn): Promise<void> {
    const agent = agents.find(known => known.name === name)
    await transport.ready(stopping.signal)
    if (agent) await take(agent, turnId, {}, claimId)
    void stop()
  }

  async function take(agent: AgentDefinition, turnId: TurnId, extra: Pick<RunTurnDeps, 'runApart'>, claimId?: string): Promise<JobEnd> {
    // What was fetched and waited for a slot is left to others; the server finds that its job is gone.
    if (stopping.signal.aborted) return 'done'
    // Its wait was answered before we heard that it is parked.
    if (held.runsOf(turnId).some(turn => turn.isParking())) return { backInMs: 100 }
    // Our lease has ended and we have not heard of it. The server decides whether we keep the turn; a claim would begin it anew.
    if (held.runsOf(turnId).length > 0) {
      leases.renew()
      return 'done'
    }
    try {
      const deps = {
        worker: id,
        server,
        appender,
        log,
        hold: held.hold,
        hasFreeSlot: () => slots.free() > 0 && !stopping.signal.aborted,
        onFenced: leases.noteFenced,
        leaving: leaving.signal,
        backpressureMs,
        tracer,
        observer,
        ...extra,
      }
      return await runTurn(agent, turnId, deps, claimId)
    } catch (error) {
      log.warn({ err: error, turnId }, 'turn did not run')
      return 'done'
    }
  }

  function refuse(error: unknown): void {
    if (stopping.signal.aborted) return
    log.error({ reason: fullTextOf(error) }, 'this worker cannot run here')
    void stop().then(() => reject(error))
  }

  function stop(): Promise<void> {
    stopped ??= windDown()
    return stopped
  }

  async function closeIntake(): Promise<void> {
    // A process that stops before it has a connection has nothing to close.
    await started.catch(error => log.info({ reason: fullTextOf(error) }, 'stopped before the start was complete'))
    await intake?.close()
  }

  async function untilIdleFor(ms: number): Promise<void> {
    for (let idleMs = 0; idleMs < ms; idleMs = jobs === 0 ? idleMs + 100 : 0) await sleep(100)
  }

  async function windDown(): Promise<void> {
    stopping.abort()
    log.info({ turns: jobs, drainMs }, 'worker is stopping')
    const grace = setTimeout(held.releaseAll, drainMs)
    const impatience = setTimeout(() => leaving.abort(new RivuletError('draining', 'This worker is stopping')), drainMs + 5_000)
    // An unavailable Redis must not prevent a process from stopping, nor make one wait that has no turn.
    await Promise.race([closeIntake(), untilIdleFor(closingMs), sleep(drainMs + 8_000, undefined, { ref: false })])
    clearTimeout(grace)
    clearTimeout(impatience)
    clearInterval(logChecks)
    await leases.stop()
    stopSurviving()
    transport.close()
  }
}
