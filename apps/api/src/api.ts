/**
 * One API process: creates its connections, parts and server, and closes them in order.
 *
 * It listens before Redis and Postgres are available: `/healthz` returns 200 and everything else 503 until they are, and it recovers without a
 * restart. It stops if they are unsuitable: a Redis that may evict keys or is too old, a schema of another version
 * (`ALLOW_NEWER_SCHEMA` permits a newer one).
 */
import { randomUUID } from 'node:crypto'
import {
  connectRedis,
  createChannels,
  createKeys,
  createLogAnnouncer,
  createLogReader,
  createLogSubscriber,
  createLogWriter,
  createProcessChannel,
  createTurnConsumer,
  createTurnQueue,
  type RedisConnection,
  readRedisMemory,
  requireFitRedis,
  whyPolicyIsUnfit,
} from '@rivulet/broker'
import { isLoopback } from '@rivulet/runtime/environment'
import { plainTracer, type Tracer } from '@rivulet/runtime/trace'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { createKeyCheck } from './access/key-check.ts'
import { shareLimits } from './access/limit-sharing.ts'
import { createOpenStreams } from './access/open-streams.ts'
import { createTaskTokens } from './access/task-token.ts'
import { createTokenBuckets } from './access/token-bucket.ts'
import { createTokenRevocations } from './access/token-revocations.ts'
import { loadSigningKeys, type SigningKeys } from './access/token-signing.ts'
import type { Config } from './config.ts'
import { createFeedFollowers } from './feed/feed-stream.ts'
import { createFeedTail } from './feed/feed-tail.ts'
import { startWebhooks, type Webhooks } from './feed/webhooks.ts'
import { createFiles } from './files/files.ts'
import { createPostgresStore } from './files/postgres-store.ts'
import { createS3Store } from './files/s3-store.ts'
import { createSpilling } from './files/spill.ts'
import { Transfers } from './files/transfers.ts'
import { Refusals } from './http/refusals.ts'
import { createServer } from './http/server.ts'
import type { Services } from './http/services.ts'
import { protocols } from './protocols/protocols.ts'
import { hasLiveKey } from './store/access/keys.ts'
import { createReachCheck, tasksWithin } from './store/access/reach.ts'
import { createVault } from './store/access/vault.ts'
import { openDatabase } from './store/connection/database.ts'
import { requireFitSchema } from './store/connection/schema-fitness.ts'
import { everyTenant } from './store/connection/tenant.ts'
import { type FeedRequest, readFeed } from './store/feed/read-feed.ts'
import { touchFile } from './store/files/file-rows.ts'
import { createTaskAcceptance } from './store/tasks/accept/accept-tasks.ts'
import { createHub, type SentSnapshots } from './stream/hub.ts'
import { createStoredTasks } from './stream/snapshot.ts'
import { SseWriters } from './stream/sse-writer.ts'
import { createMetricSamples } from './telemetry/metric-samples.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { watchBacklog } from './turns/backlog.ts'
import { watchCapacity } from './turns/capacity.ts'
import { createChildTasks } from './turns/child-tasks.ts'
import { createTurnEnding } from './turns/ending/turn-ending.ts'
import { type Reconciler, startReconciler } from './turns/reconciler/reconciler.ts'
import { createRelay } from './turns/relay.ts'
import { type Schedules, startSchedules } from './turns/schedules.ts'
import { createTurnAnnouncing } from './turns/turn-announcing.ts'
import { createTurnDeaths } from './turns/turn-deaths.ts'
import { createTurnPolls } from './turns/turn-polls.ts'
import { createTurnUsage } from './turns/turn-usage.ts'
import { createTurnWaiting } from './turns/turn-waiting.ts'
import { createWorkerHints } from './turns/worker-hints.ts'

/** Over how long open streams are ended when this process stops. */
const drainMs = 1_000
/** How often this process looks for new entries of the feed while a client follows it. */
const feedPollMs = 200

/** How long uploads and downloads may take from then on. */
const transferGraceMs = 5_000

export type Api = {
  app: FastifyInstance
  url: string
  /** Where workers ask, when that is elsewhere. */
  internalUrl: string | null
  /** Rejects when this process must not go on. */
  refused: Promise<never>
  close(): Promise<void>
}

type ApiOptions = { tracer?: Tracer }

export async function startApi(config: Config, logger: FastifyBaseLogger, { tracer = plainTracer }: ApiOptions = {}): Promise<Api> {
  const { limits } = config
  const onError = (error: Error) => logger.debug({ err: error }, 'Redis closed the connection; reconnecting')
  const onPostgresError = (error: Error) => logger.debug({ err: error }, 'Postgres closed a connection; the pool opens another')
  const onMove = () => logger.warn('Postgres is another server than before, or was promoted; the change feed goes on behind its last entry')
  const database = openDatabase({ url: config.databaseUrl, onError: onPostgresError, onMove })
  const redis = connectRedis('command', { url: config.redisUrl, onError })
  const redisKeys = createKeys(config.redisPrefix)
  const queue = createTurnQueue({ redis, keys: redisKeys, onError })
  const reader = createLogReader({ redis, keys: redisKeys })
  const announcer = createLogAnnouncer({ redis, keys: redisKeys, retentionMs: config.logRetentionMs })
  const metrics = createMetrics()
  const { db, databaseFor, pool } = database
  const { bucket } = config
  const stores = {
    postgres: createPostgresStore(database.filesFor),
    ...(bucket && { s3: createS3Store(bucket, ({ tenant, id }) => touchFile(databaseFor(tenant), tenant, id)) }),
  }
  const { maxFileBytesPerTenant: maxTenantBytes } = config
  const files = createFiles({ db, databaseFor, stores, store: bucket ? 's3' : 'postgres', maxTenantBytes, logger })
  const spilling = createSpilling(files, logger)
  const transfers = new Transfers(config.maxFileTransfers, count => metrics.fileTransfers.set(count))
  const backlog = watchBacklog({ db, onRoom: agent => relay.refill(agent) })
  const relay = createRelay({ db, queue, backlog, workerTimeoutMs: config.leaseMs, logger, metrics, tracer })
  const announcing = createTurnAnnouncing({ db, reader, announcer, logger })
  const childTasks = createChildTasks({
    db,
    announcer,
    announcing,
    relay,
    metrics,
    limits: { ...config.childLimits, queuedTurns: limits.queuedTurns },
  })
  const usage = createTurnUsage({ db, prices: config.prices, metrics })
  const ending = createTurnEnding({ db, databaseFor, reader, announcer, announcing, childTasks, spilling, usage, logger, metrics })
  const deaths = createTurnDeaths({ db, reader, ending, usage, metrics, logger })
  const waiting = createTurnWaiting({ db, reader, announcer, announcing, relay, usage, logger, metrics })
  const pushed = connectRedis('subscriber', { url: config.redisUrl, onError })
  const channels = createChannels(pushed)
  const hints = createWorkerHints({ channels, keys: redisKeys })
  let blocking: RedisConnection | null = null
  const polls = createTurnPolls((queue, run) => {
    // Only for workers without Redis.
    blocking ??= connectRedis('blocking', { url: config.redisUrl, onError })
    return createTurnConsumer({ queue, redis: blocking, keys: redisKeys, concurrency: 1, run, onError })
  })
  const onFeedError = (error: unknown) => logger.warn({ err: error }, 'could not read a feed')
  const subscribe = (handlers: Pick<Parameters<typeof createLogSubscriber>[0], 'onPush' | 'onRemoved' | 'onReset'>) =>
    createLogSubscriber({ channels, keys: redisKeys, ...handlers })
  const onSnapshots = ({ turnNumber: turn, ...sent }: SentSnapshots) =>
    logger[sent.reason === 'join' ? 'debug' : 'info']({ ...sent, turn }, 'sent a snapshot to viewers')
  const writers = new SseWriters(limits.viewerStallMs)
  const hub = createHub({
    stored: createStoredTasks(databaseFor, limits.snapshotBytes),
    log: reader,
    subscribe,
    metrics,
    limits,
    onError: onFeedError,
    onSnapshots,
  })
  const onFeedReadError = (error: unknown) => logger.warn({ err: error }, 'could not read the feed')
  const feedFollowers = createFeedFollowers({
    readFor: whose => (request: FeedRequest) => readFeed(databaseFor(whose), whose.tenant, request),
    tail: createFeedTail({
      read: after => readFeed(db, everyTenant, { after, limit: 1_000 }),
      pollMs: feedPollMs,
      onError: onFeedReadError,
    }),
    onError: onFeedReadError,
  })
  const stopping = new AbortController()
  const capacity = watchCapacity({ readMemory: () => readRedisMemory(redis), db, limits: config.capacityLimits })
  let reconciler: Reconciler | null = null
  let webhooks: Webhooks | null = null
  let schedules: Schedules | null = null
  let closed: Promise<void> | null = null

  const { key, workerKey, pepper, oldPepper } = config
  const vault = createVault(config.secretsKeys)
  const keys = createKeyCheck({ db, key, workerKey, pepper, oldPepper })
  let signingKeys: SigningKeys | null = null
  const tokens = createTaskTokens(() => signingKeys)
  const revocations = createTokenRevocations({ db, databaseFor })
  const rates = createTokenBuckets(config.rateLimits)
  const onLimit = (setting: string) => metrics.limitRejections.inc({ setting })
  const publish = (message: string) => processes.publish(message)
  const sharing = shareLimits({ id: randomUUID(), rates, streams: () => streams, publish })
  const processes = createProcessChannel({ redis, channels, keys: redisKeys, onMessage: sharing.heard })
  const streams = createOpenStreams({
    ...{ keys, tokens, revocations, limits: config.streamLimits, elsewhere: sharing.elsewhere, onLimit },
    tasksWithin: (reader, tasks) => tasksWithin(databaseFor(reader), reader, tasks),
    onCut: (whose, count) => logger.info({ ...whose, streams: count }, 'closed streams of revoked or expired keys or tokens'),
    onError: error => logger.warn({ err: error }, 'could not check the keys of open streams'),
  })
  const refusals = new Refusals({
    db,
    onEntry: action => metrics.auditEntries.inc({ action }),
    onError: error => logger.warn({ err: error }, 'could not write refused requests to the audit log'),
  })
  const services: Services = {
    config,
    access: { keys, tokens, revocations, rates, onLimit, isWithin: createReachCheck(databaseFor) },
    streams,
    refusals,
    capacity,
    backlog,
    db,
    leases: database.leases,
    databaseFor,
    listsFor: database.listsFor,
    acceptance: createTaskAcceptance(databaseFor),
    reader,
    announcer,
    writer: createLogWriter({ redis, keys: redisKeys }),
    polls,
    hints,
    files,
    spilling,
    transfers,
    relay,
    announcing,
    ending,
    deaths,
    waiting,
    usage,
    childTasks,
    vault,
    hub,
    writers,
    feedFollowers,
    metrics,
    sampleMetrics: createMetricSamples({ metrics, db, database, writers, capacity, backlog, leaseMs: config.leaseMs }),
    tracer,
    hasStarted,
    isDraining,
    unready,
  }
  const { internal } = config
  const app = await createServer(services, protocols, logger, { clients: true, workers: internal === null })
  const url = await app.listen({ host: config.host, port: config.port })
  const { internalTls } = config
  const internalApp = internal && (await createServer(services, protocols, logger, { clients: false, workers: true, tls: internalTls }))
  const listening = internal && internalApp ? await internalApp.listen(internal) : null
  const internalUrl = internalTls ? (listening?.replace(/^http:/, 'https:') ?? null) : listening
  const started = begin()
  const fits = requireFitRedis(redis, stopping.signal).then(remark => remark && logger.warn(remark))
  const refused = new Promise<never>((_, reject) => {
    for (const check of [started, fits]) check.catch(error => !stopping.signal.aborted && reject(error))
  })
  refused.catch(() => {})
  return { app, url, internalUrl, refused, close }

  async function begin(): Promise<void> {
    const { databaseUrl, allowNewerSchema: allowNewer } = config
    await requireFitSchema(
      { pool, tenantPool: database.pools.tenants, logger, migrateUrl: config.migrate ? databaseUrl : null, allowNewer },
      stopping.signal,
    )
    if (stopping.signal.aborted) return
    await requireSomeKey()
    signingKeys = await loadSigningKeys({ db, logger, key, pepper, oldPepper }, stopping.signal)
    if (!signingKeys) return
    const { leaseMs, reconcileMs, taskRetentionMs, usageRetentionMs, auditRetentionMs } = config
    const parts = {
      pool,
      db,
      leases: database.leases,
      queue,
      relay,
      announcer,
      announcing,
      ending,
      deaths,
      waiting,
      childTasks,
      files,
      logger,
      metrics,
    }
    webhooks = startWebhooks({ db, vault, logger, metrics, allowPrivate: config.webhooks.allowPrivate })
    schedules = startSchedules({ db, ending, relay, logger, maxQueuedTurns: limits.queuedTurns, admit: capacity.admit })
    reconciler = startReconciler({ ...parts, vault, leaseMs, reconcileMs, taskRetentionMs, usageRetentionMs, auditRetentionMs })
  }

  /** An API that other machines can reach needs at least one key that is good. */
  async function requireSomeKey(): Promise<void> {
    if (key || isLoopback(config.host) || (await hasLiveKey(db).catch(() => true))) return
    throw new Error('This API requires a key, and the database has none: create one with `rivulet keys create`, or set RIVULET_KEY')
  }

  function hasStarted(): boolean {
    return reconciler !== null
  }

  function isDraining(): boolean {
    return stopping.signal.aborted
  }

  async function unready(): Promise<string | null> {
    if (stopping.signal.aborted) return 'This process is stopping'
    if (!reconciler) return 'This process is starting; retry'
    if (pushed.status !== 'ready') return 'Redis is unavailable'
    // One that cannot write its file still tells about itself, and refuses to be pinged.
    const [memory] = await Promise.all([readRedisMemory(redis), redis.ping()]).catch(() => [null])
    if (!memory) return 'Redis is unavailable'
    return whyPolicyIsUnfit(memory.policy) ?? ((await succeeds(() => pool.query('select 1'))) ? null : 'Postgres is unavailable')
  }

  function close(): Promise<void> {
    closed ??= windDown()
    return closed
  }

  async function windDown(): Promise<void> {
    logger.info('api is stopping')
    stopping.abort()
    streams.close()
    sharing.close()
    feedFollowers.close()
    transfers.close(transferGraceMs)
    hints.close()
    await polls.close()
    await hub.close(drainMs)
    await app.close()
    await internalApp?.close()
    writers.close()
    await started.catch(() => {})
    await Promise.all([reconciler?.stop(), webhooks?.stop(), schedules?.stop()])
    await refusals.close()
    await capacity.close()
    await backlog.close()
    await relay.idle()
    await queue.close()
    redis.disconnect()
    pushed.disconnect()
    blocking?.disconnect()
    await database.close()
  }
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  return work().then(
    () => true,
    () => false,
  )
}
