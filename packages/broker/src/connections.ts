/**
 * Connections to Redis, by what they are for. A blocking read would stall every other command on its connection, so each role has its own.
 *
 * `command` fails fast: it never queues while Redis is away and notices a frozen server, so that its caller decides what to do.
 * `blocking` is for BullMQ's workers, which wait for ever by design. `subscriber` waits for pushes; to subscribe fails as fast as a command.
 */
import { Redis, type RedisOptions } from 'ioredis'

export type RedisRole = 'command' | 'blocking' | 'subscriber'

export type ConnectionDeps = { url: string; onError: (error: Error) => void }

export function connectRedis(role: RedisRole, { url, onError }: ConnectionDeps): Redis {
  const redis = new Redis(url, { retryStrategy: reconnectDelay, keepAlive: 10_000, ...optionsOf[role] })
  redis.on('error', onError)
  return redis
}

const optionsOf: Record<RedisRole, Omit<RedisOptions, 'replyMapping'>> = {
  command: { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 2_000, connectTimeout: 2_000 },
  blocking: { maxRetriesPerRequest: null },
  subscriber: { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 2_000, connectTimeout: 2_000, autoResubscribe: false },
}

/** Resolves when commands can be sent; a connection that never comes up is the caller's signal to abort. */
export function whenReady(redis: Redis, signal?: AbortSignal): Promise<void> {
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

/** At most a second, jittered, so that processes do not come back in step. */
function reconnectDelay(attempt: number): number {
  return Math.min(1_000, 50 * 2 ** Math.min(attempt, 5)) * (0.5 + Math.random() / 2)
}
