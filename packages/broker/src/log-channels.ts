/**
 * The channels on which logs push what is written to them.
 *
 * In a cluster they are sharded: a channel belongs to the server that has the log, so a push does not cross the cluster's bus. Each server has a connection of
 * its own for pushes, and the client subscribes anew when a slot gets another server.
 */
import type { RedisConnection } from './connections.ts'

/** For scripts, which publish to the slot that they run in. */
export function publishCommand({ isCluster }: RedisConnection): 'PUBLISH' | 'SPUBLISH' {
  return isCluster ? 'SPUBLISH' : 'PUBLISH'
}

export async function publish(redis: RedisConnection, channel: string, message: string): Promise<void> {
  await (redis.isCluster ? redis.spublish(channel, message) : redis.publish(channel, message))
}

/** Rejects unless all channels are subscribed to. */
export async function subscribe(redis: RedisConnection, channels: readonly string[]): Promise<void> {
  // A command may name channels of one slot only.
  if (redis.isCluster) await Promise.all(channels.map(channel => redis.ssubscribe(channel)))
  else await redis.subscribe(...channels)
}

export async function unsubscribe(redis: RedisConnection, channel: string): Promise<void> {
  await (redis.isCluster ? redis.sunsubscribe(channel) : redis.unsubscribe(channel))
}

export function onMessage(redis: RedisConnection, handle: (channel: string, message: string) => void): void {
  redis.on(redis.isCluster ? 'smessage' : 'message', handle)
}

/** After a connection was replaced, the channels have to be subscribed to again. */
export function onConnected(redis: RedisConnection, handle: () => void): void {
  for (const event of redis.isCluster ? ['ready', 'subscribersReady'] : ['ready']) redis.on(event, handle)
}
