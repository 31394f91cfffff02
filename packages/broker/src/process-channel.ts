/** The channel on which API processes publish what they count. Messages may be lost, and are while Redis is unavailable: then each process counts by itself. */
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export type ProcessChannel = { publish(message: string): void }

/** `pushed` is a `subscriber` connection, which may have other channels too. The caller closes both. */
export function createProcessChannel({
  redis,
  pushed,
  keys,
  onMessage,
}: {
  redis: RedisConnection
  pushed: RedisConnection
  keys: Keys
  onMessage: (message: string) => void
}): ProcessChannel {
  const subscribe = () => void pushed.subscribe(keys.processChannel).catch(() => {})
  pushed.on('message', (channel: string, message: string) => channel === keys.processChannel && onMessage(message))
  pushed.on('ready', subscribe)
  if (pushed.status === 'ready') subscribe()
  return {
    publish(message) {
      if (redis.status === 'ready') redis.publish(keys.processChannel, message).catch(() => {})
    },
  }
}
