/**
 * Connections to Redis by role. Each role has its own, because a blocking read would stall every other command on its connection.
 *
 * `command` fails fast: it does not queue while Redis is unavailable, and times out on a frozen server, so that the caller decides what to do.
 * `blocking` is for BullMQ's workers, which wait without a limit. `subscriber` receives pushes; subscribing fails as fast as a command.
 * The URL names one server, a Redis Cluster, or the Sentinels of a master (`redis-url.ts`).
 */
import { backoffMs } from '@rivulet/protocol'
import { parseRedisUrl, type RedisUrl } from '@rivulet/runtime/redis-url'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { createSentinelConnector } from './sentinel-connector.ts'
import { type SentinelUrl, sentinelsOf } from './sentinels.ts'

export type RedisRole = 'command' | 'blocking' | 'subscriber'

/** One server, the current master of Sentinels, or a cluster; the commands are the same. */
export type RedisConnection = Redis | Cluster

type ConnectionDeps = { url: string; onError: (error: Error) => void }

export function connectRedis(role: RedisRole, { url, onError }: ConnectionDeps): RedisConnection {
  const redis = openConnection(role, url)
  redis.on('error', onError)
  return redis
}

function openConnection(role: RedisRole, url: string): RedisConnection {
  const parsed = parseRedisUrl(url)
  switch (parsed.kind) {
    case 'single':
      return new Redis(url, { retryStrategy: reconnectDelay, ...common, ...optionsOf[role] })
    case 'cluster':
      return connectCluster(role, parsed)
    case 'sentinel':
      return connectBySentinels(role, parsed)
    default:
      return parsed satisfies never
  }
}

function connectBySentinels(role: RedisRole, url: SentinelUrl): Redis {
  const Connector = createSentinelConnector(sentinelsOf(url))
  // The ready check tells a master from a replica.
  return new Redis({ retryStrategy: reconnectDelay, Connector, ...common, ...optionsOf[role], ...accessOf(url), enableReadyCheck: true })
}

function connectCluster(role: RedisRole, url: RedisUrl): Cluster {
  const { enableOfflineQueue = true, autoResubscribe: _, ...options } = optionsOf[role]
  const cluster = new Cluster(url.addresses, {
    clusterRetryStrategy: reconnectDelay,
    enableOfflineQueue,
    // If the cluster is down at this check, ioredis never settles the promise of `connect`, and the BullMQ worker that waits for it takes no job again.
    enableReadyCheck: role !== 'blocking',
    shardedSubscribers: role === 'subscriber',
    // A connection that only receives pushes sends no command that would show it that its server was replaced.
    slotsRefreshInterval: 5_000,
    redisOptions: {
      ...common,
      ...options,
      ...accessOf(url),
    },
  })
  cluster.on('+node', keepAskingHarmless)
  return cluster
}

/**
 * ioredis sends ASKING before the command that a server redirected, and does not handle its failure (a server that vanished, a login without
 * the command), so that an unhandled rejection would end the process. The redirected command fails by itself.
 */
function keepAskingHarmless(server: Redis): void {
  const asking = server.asking.bind(server)
  server.asking = async () => asking().catch(() => 'OK' as const)
}

function accessOf({ isTls, login }: RedisUrl): Pick<RedisOptions, 'tls' | 'username' | 'password'> {
  return { ...login, ...(isTls && { tls: {} }) }
}

/**
 * Without a ready check, ioredis takes a connection for ready once its CLIENT SETINFO has succeeded or failed. If that fails because the connection broke, it
 * would take the broken one for ready, and never connect again.
 */
const common = { keepAlive: 10_000, disableClientInfo: true }

/**
 * `socketTimeout` closes a connection whose server returns nothing for so long. Without it, a server that vanished without closing its connections, or is
 * frozen, keeps them for up to 15 minutes, the time for which Linux sends a packet again, even if another server has taken its place.
 */
const fast = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 2_000, connectTimeout: 2_000, socketTimeout: 3_000 }

const optionsOf: Record<RedisRole, RedisOptions> = {
  command: fast,
  // BullMQ blocks for up to 10 s.
  blocking: { maxRetriesPerRequest: null, socketTimeout: 15_000 },
  // A ready check sends INFO, which Redis rejects on a connection that has subscribed meanwhile, and ioredis closes the connection for that.
  subscriber: { ...fast, autoResubscribe: false, enableReadyCheck: false },
}

/** Resolves when commands can be sent. It waits without a limit; the caller aborts by the signal. */
export function whenReady(redis: RedisConnection, signal?: AbortSignal): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve()
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => () => {
      redis.off('ready', onReady)
      signal?.removeEventListener('abort', onAbort)
      act()
    }
    const onReady = settle(resolve)
    const onAbort = settle(() => reject(signal?.reason))
    redis.once('ready', onReady)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function reconnectDelay(attempt: number): number {
  return backoffMs(attempt, { firstMs: 100, maxMs: 1_000 })
}
