/**
 * The channels that one connection hears. A message goes to the handler of its channel, as bytes, because the API passes the JSON of a push on without decoding it.
 *
 * In a cluster the channels of logs are sharded: a channel belongs to the server that has the log, so a push does not cross the cluster's bus. Each server has
 * a connection of its own for pushes, and the client subscribes anew when a slot gets another server.
 */
import type { RedisConnection } from './connections.ts'

/** `isSharded` is true for the channel of a log. */
type Hearing = { handle: (message: Buffer) => void; isSharded: boolean }

export type Channels = {
  /** Resolves when every later message will be heard. If it rejects, the channel is subscribed to with the next connection. */
  hear(channel: string, hearing: Hearing): Promise<void>
  leave(channel: string): Promise<void>
  /** Messages are lost while a connection breaks. The handler is called when the channels of all logs are subscribed to again. */
  onReset(handle: () => void): void
}

/** `redis` is a `subscriber` connection. The caller closes it. */
export function createChannels(redis: RedisConnection): Channels {
  const heard = new Map<string, Hearing & { channel: string }>()
  const resets: (() => void)[] = []
  let hasConnected = redis.status === 'ready'
  // It listens for buffers alone, because ioredis decodes every message if there is a listener for texts.
  for (const event of ['messageBuffer', 'smessageBuffer']) redis.on(event, deliver)
  for (const event of redis.isCluster ? ['ready', 'subscribersReady'] : ['ready']) redis.on(event, hearAgain)
  return { hear, leave, onReset: handle => resets.push(handle) }

  function deliver(channel: Buffer, message: Buffer): void {
    heard.get(channel.toString('latin1'))?.handle(message)
  }

  async function hear(channel: string, hearing: Hearing): Promise<void> {
    heard.set(byteName(channel), { ...hearing, channel })
    await subscribe([channel], hearing.isSharded)
  }

  async function leave(channel: string): Promise<void> {
    const isSharded = heard.get(byteName(channel))?.isSharded
    heard.delete(byteName(channel))
    await (redis.isCluster && isSharded ? redis.sunsubscribe(channel) : redis.unsubscribe(channel))
  }

  function hearAgain(): void {
    const isAgain = hasConnected
    hasConnected = true
    const failed = () => {
      // The next connection subscribes. Until then a feed that hears nothing asks for its log.
    }
    subscribe(namesOf(true), true).then(() => {
      if (isAgain) for (const handle of resets) handle()
    }, failed)
    subscribe(namesOf(false), false).catch(failed)
  }

  function namesOf(isSharded: boolean): string[] {
    return [...heard.values()].flatMap(one => (one.isSharded === isSharded ? [one.channel] : []))
  }

  async function subscribe(channels: readonly string[], isSharded: boolean): Promise<void> {
    if (channels.length === 0) return
    if (isBeingChecked(redis)) throw new Error('Connection is closed: the ready check is not over')
    // A command may name channels of one slot only.
    if (redis.isCluster && isSharded) await Promise.all(channels.map(channel => redis.ssubscribe(channel)))
    else await redis.subscribe(...channels)
  }
}

/** The ready check of a master that Sentinels name sends INFO, which Redis rejects on a connection that has subscribed, and ioredis closes it for that. */
function isBeingChecked(redis: RedisConnection): boolean {
  return !redis.isCluster && redis.status === 'connect' && redis.options.enableReadyCheck === true
}

/** The name as `deliver` reads it, with a character for each byte. */
function byteName(channel: string): string {
  return Buffer.from(channel).toString('latin1')
}

/** For scripts, which publish to the slot that they run in. */
export function publishCommand({ isCluster }: RedisConnection): 'PUBLISH' | 'SPUBLISH' {
  return isCluster ? 'SPUBLISH' : 'PUBLISH'
}

/** Publishes to the channel of a log. */
export async function publish(redis: RedisConnection, channel: string, message: string): Promise<void> {
  await (redis.isCluster ? redis.spublish(channel, message) : redis.publish(channel, message))
}
