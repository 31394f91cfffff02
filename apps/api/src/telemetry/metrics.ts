/**
 * The metrics of an API process. One registry per server, so that several servers can run in one test.
 *
 * Every metric is declared here, with a help text that docs/operations.md repeats. Labels have few values: those from outside are either from a
 * fixed table or bounded.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** Why the API cut a connection. */
const cutReasons = ['too_many', 'pipelined', 'unread'] as const

export type CutReason = (typeof cutReasons)[number]

export type Metrics = ReturnType<typeof createMetrics>

/** Of deltas and requests, in seconds. */
const short = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Of turns, in seconds. */
const long = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1_800, 3_600]
/** What the reconciler mends. */
export const repairKinds = ['outbox', 'lease', 'deadline', 'cancel', 'announcement', 'job', 'file'] as const
/** Agents beyond this many share the label `other`. */
const maxAgents = 100
/** As above, for models. */
const maxModels = 20
/** As above, for versions of workers. */
const maxVersions = 50

export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name: `rivulet_${name}_total`, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name: `rivulet_${name}`, help, labelNames, registers })
  const histogram = <L extends string>(name: string, help: string, buckets: number[], labelNames: L[] = []) =>
    new Histogram({ name: `rivulet_${name}`, help, labelNames, buckets, registers })

  const metrics = {
    registry,
    agentLabel: createBoundedLabel(maxAgents),
    modelLabel: createBoundedLabel(maxModels),
    versionLabel: createBoundedLabel(maxVersions),

    tasks: counter('tasks_created', 'Tasks accepted'),
    turns: counter('turns_finished', 'Ended turns, by status and agent', ['status', 'agent']),
    children: counter('children_spawned', 'Tasks that turns have spawned', ['agent']),
    tokens: counter('tokens', 'Tokens that responses of models used, of all attempts', ['agent', 'model']),
    cancels: counter('turns_canceled', 'Canceled turns, by origin', ['by']),
    turnWait: histogram('turn_wait_seconds', 'Time from when an attempt could start until a worker claimed it', long, ['agent']),
    turnRun: histogram('turn_run_seconds', 'Time from the first claim of a turn to its end, including retries', long, ['agent', 'status']),
    turnAttempts: histogram('turn_attempts', 'Attempts per claimed turn', [1, 2, 3, 4, 5, 10], ['agent']),
    retries: counter('turn_retries', 'Failed attempts that are retried'),
    deaths: counter('worker_deaths', 'Turns whose worker died'),
    blocked: counter('turns_blocking', 'Turns that blocked the event loop of their worker and so ended the process'),
    takenBack: counter(
      'leases_taken_back',
      'Turns that their worker resumed after the lease had expired, because no other worker had claimed them',
    ),
    dispatched: counter('turns_dispatched', 'Jobs sent to the queue'),

    queued: gauge('turns_queued', 'Turns that wait for a worker and could run now, in all processes', ['agent']),
    oldestQueued: gauge('oldest_queued_turn_seconds', 'Waiting time of the oldest turn that could run now', ['agent']),
    parks: counter('turns_parked', 'Turns that freed their worker to wait'),
    joins: counter('turns_joined', 'Turns that ended as a part of another one, by how they joined it', ['how']),
    openWaits: gauge('waits_open', 'Open waits, in all processes', ['agent', 'kind']),
    oldestWait: gauge('oldest_open_wait_seconds', 'Age of the oldest open wait', ['agent', 'kind']),
    running: gauge('turns_running', 'Claimed turns, in all processes', ['agent']),
    spareSlots: gauge(
      'slots_kept_free',
      'Free slots that turns of other keys may take, while turns of the agent wait, as this process knows',
      ['agent'],
    ),
    workers: gauge('workers', 'Worker processes with a heartbeat within a lease', ['agent']),
    versionWorkers: gauge('version_workers', 'Worker processes with a heartbeat within a lease, by their version', ['version']),
    versionTurns: gauge('version_turns', 'Turns that have not ended, by the version of the worker that began them', ['version']),

    fenced: counter('fenced_writes', 'Writes rejected because another worker has the turn, by kind', ['write']),
    repairs: counter('reconciler_repairs', 'Repairs by the reconciler, by kind', ['kind']),
    reopened: counter('logs_reopened', 'Logs reopened after they had lost entries'),
    badEntries: counter('bad_log_entries', 'Log entries that could not be read'),
    digestMismatches: counter('digest_mismatches', 'Turns that worker and server folded differently'),

    viewers: gauge('viewers', 'Tasks watched by open event streams, each stream counted once per task'),
    waits: gauge('turn_waits', 'Requests that wait for the end of a turn (`?wait=`)'),
    blockedViewers: gauge('viewers_blocked', 'Open event streams whose socket is full'),
    unsentBytes: gauge('viewer_unsent_bytes', 'Bytes in this process that wait for the sockets of viewers'),
    cutViewers: counter('viewers_cut', 'Viewers closed because they read nothing for too long'),
    snapshots: counter('snapshots_sent', 'Snapshots sent to viewers, by reason: a join, a gap, or a slow viewer', ['reason']),
    deltaLag: histogram('delta_lag_seconds', "Time from an agent's output to its write to viewers, sampled", short),

    requests: counter('http_requests', 'Responses, by route and status; a stream counts when it opens', ['method', 'route', 'status']),
    requestSeconds: histogram('http_request_seconds', 'Duration of requests, without streams and waits', short, ['method', 'route']),
    errors: counter('http_errors', 'Rejected and failed requests, by error code', ['code']),
    limitRejections: counter('limit_rejections', 'Requests and streams above a limit of callers, by the setting of the limit', ['setting']),

    cutConnections: counter(
      'connections_cut',
      'Connections that the API closed, by reason: too many connections, too many requests at once, unread',
      ['reason'],
    ),

    feedHeld: gauge(
      'feed_held_seconds',
      'Age of the oldest change that an open transaction in Postgres keeps from the change feed and webhooks',
    ),
    auditEntries: counter('audit_entries', 'Entries of the audit log, by action', ['action']),
    webhookAttempts: counter('webhook_attempts', 'Attempts to deliver a webhook, by result', ['result']),
    fileBytes: counter('file_bytes', 'Bytes of files, by direction: up from clients, down to clients', ['direction']),
    fileTransfers: gauge('file_transfers', 'Uploads and downloads of files in progress'),

    redisMemory: gauge('redis_memory_ratio', 'Share of its maxmemory that Redis uses; absent without a limit'),
    pool: gauge('postgres_connections', 'Connections to Postgres and requests that wait for one, by pool and state', ['pool', 'state']),
  }
  // From the start, at nothing: an alert cannot add up what is not there, nor see a rise in what begins with its first one.
  for (const reason of ['join', 'gap', 'slow']) metrics.snapshots.inc({ reason }, 0)
  for (const reason of cutReasons) metrics.cutConnections.inc({ reason }, 0)
  for (const direction of ['up', 'down']) metrics.fileBytes.inc({ direction }, 0)
  for (const kind of repairKinds) metrics.repairs.inc({ kind }, 0)
  for (const result of ['delivered', 'failed']) metrics.webhookAttempts.inc({ result }, 0)
  for (const how of ['inject', 'merge']) metrics.joins.inc({ how }, 0)
  for (const write of ['append', 'reopen', 'step', 'ask', 'park', 'take', 'store', 'finish']) metrics.fenced.inc({ write }, 0)
  return metrics
}

/** A label whose values come from outside: the first so many are themselves. */
function createBoundedLabel(max: number): (value: string) => string {
  const known = new Set<string>()
  return value => {
    if (known.size < max) known.add(value)
    return known.has(value) ? value : 'other'
  }
}
