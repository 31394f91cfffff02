/**
 * Connections to Redis by role. Each role has its own, because a blocking read would stall every other command on its connection.
 *
 * `command` fails fast: it does not queue while Redis is unavailable, and times out on a frozen server, so that the caller decides what to do.
 * `blocking` is for BullMQ's workers, which wait without a limit. `subscriber` receives pushes; subscribing fails as fast as a command.
 * A URL with several servers, separated by commas, is a Redis Cluster: `redis://10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379`.
 */
import { backoffMs } from '@rivulet/protocol'
import { Cluster, Redis, type RedisOptions } from 'ioredis'

export type RedisRole = 'command' | 'blocking' | 'subscriber'

/** One server or a cluster; the commands are the same. */
export type RedisConnection = Redis | Cluster

export type ConnectionDeps = { url: string; onError: (error: Error) => void }

export function connectRedis(role: RedisRole, { url, onError }: ConnectionDeps): RedisConnection {
  const redis = isClusterUrl(url)
    ? connectCluster(role, url)
    : new Redis(url, { retryStrategy: reconnectDelay, ...common, ...optionsOf[role] })
  redis.on('error', onError)
  return redis
}

function isClusterUrl(url: string): boolean {
  return url.includes(',')
}

/** Password and TLS of the first server apply to all servers. */
function connectCluster(role: RedisRole, url: string): Cluster {
  const [first = '', ...others] = url.split(',')
  const { protocol, hostname, port, username, password } = new URL(first)
  const nodes = [`${hostname}:${port || 6379}`, ...others].map(address => {
    const at = address.lastIndexOf(':')
    return { host: address.slice(0, at), port: Number(address.slice(at + 1)) }
  })
  const { enableOfflineQueue = true, autoResubscribe: _, ...options } = optionsOf[role]
  const cluster = new Cluster(nodes, {
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
      ...(protocol === 'rediss:' && { tls: {} }),
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
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

const common = { keepAlive: 10_000 }

/**
 * `socketTimeout` closes a connection whose server returns nothing for so long. Without it, a server that vanished without closing its connections, or is
 * frozen, keeps them for up to 15 minutes, the time for which Linux sends a packet again, even if another server has taken its place.
 */
const fast = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 2_000, connectTimeout: 2_000, socketTimeout: 3_000 }

const optionsOf: Record<RedisRole, Omit<RedisOptions, 'replyMapping'>> = {
  command: fast,
  // BullMQ blocks for up to 10 s.
  blocking: { maxRetriesPerRequest: null, socketTimeout: 15_000 },
  subscriber: { ...fast, autoResubscribe: false },
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
