/** The channel on which API processes publish what they count. Messages may be lost, and are while Redis is unavailable: then each process counts by itself. */
import type { Channels } from './channels.ts'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export type ProcessChannel = { publish(message: string): void }

export function createProcessChannel({
  redis,
  channels,
  keys,
  onMessage,
}: {
  redis: RedisConnection
  channels: Channels
  keys: Keys
  onMessage: (message: string) => void
}): ProcessChannel {
  channels.hear(keys.processChannel, { handle: message => onMessage(message.toString()), isSharded: false }).catch(() => {})
  return {
    publish(message) {
      if (redis.status === 'ready') redis.publish(keys.processChannel, message).catch(() => {})
    },
  }
}
