/**
 * The channels that one connection hears. A message goes to the handler of its channel, as bytes: the JSON in a push of a log leaves as it came.
 *
 * In a cluster the channels of logs are sharded: a channel belongs to the server that has the log, so a push does not cross the cluster's bus. Each server has
 * a connection of its own for pushes, and the client subscribes anew when a slot gets another server.
 */
import type { RedisConnection } from './connections.ts'

/** `isSharded` for the channel of a log. */
export type Hearing = { handle: (message: Buffer) => void; isSharded: boolean }

export type Channels = {
  /** Resolves when every later message will be heard. If it rejects, the channel is subscribed to with the next connection. */
  hear(channel: string, hearing: Hearing): Promise<void>
  leave(channel: string): Promise<void>
  /** Messages are lost while a connection breaks. The handler is called when every channel is subscribed to again. */
  onReset(handle: () => void): void
}

/** `redis` is a `subscriber` connection. The caller closes it. */
export function createChannels(redis: RedisConnection): Channels {
  const heard = new Map<string, Hearing>()
  const resets: (() => void)[] = []
  let hasConnected = redis.status === 'ready'
  // Of bytes alone, because for a listener of texts ioredis decodes every message.
  for (const event of ['messageBuffer', 'smessageBuffer']) redis.on(event, deliver)
  for (const event of redis.isCluster ? ['ready', 'subscribersReady'] : ['ready']) redis.on(event, () => void hearAgain())
  return { hear, leave, onReset: handle => resets.push(handle) }

  function deliver(channel: Buffer, message: Buffer): void {
    heard.get(channel.toString('latin1'))?.handle(message)
  }

  async function hear(channel: string, hearing: Hearing): Promise<void> {
    heard.set(channel, hearing)
    await subscribe([channel], hearing.isSharded)
  }

  async function leave(channel: string): Promise<void> {
    const isSharded = heard.get(channel)?.isSharded
    heard.delete(channel)
    await (redis.isCluster && isSharded ? redis.sunsubscribe(channel) : redis.unsubscribe(channel))
  }

  async function hearAgain(): Promise<void> {
    try {
      const channels = [...heard.keys()]
      const isSharded = (channel: string) => heard.get(channel)?.isSharded === true
      await subscribe(channels.filter(isSharded), true)
      await subscribe(
        channels.filter(channel => !isSharded(channel)),
        false,
      )
      if (hasConnected) for (const handle of resets) handle()
      hasConnected = true
    } catch {
      // The connection broke again: the next one subscribes.
    }
  }

  async function subscribe(channels: readonly string[], isSharded: boolean): Promise<void> {
    if (channels.length === 0) return
    // A command may name channels of one slot only.
    if (redis.isCluster && isSharded) await Promise.all(channels.map(channel => redis.ssubscribe(channel)))
    else await redis.subscribe(...channels)
  }
}

/** For scripts, which publish to the slot that they run in. */
export function publishCommand({ isCluster }: RedisConnection): 'PUBLISH' | 'SPUBLISH' {
  return isCluster ? 'SPUBLISH' : 'PUBLISH'
}

/** To the channel of a log. */
export async function publish(redis: RedisConnection, channel: string, message: string): Promise<void> {
  await (redis.isCluster ? redis.spublish(channel, message) : redis.publish(channel, message))
}
