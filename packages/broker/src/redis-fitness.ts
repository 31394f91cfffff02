/**
 * Checks that a Redis is usable: it must not evict keys, and it must have the commands of our scripts and of BullMQ.
 *
 * It uses INFO, because managed servers allow it where they forbid CONFIG. It waits for a server that is unavailable, and rejects only a server
 * that has replied.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisConnection, whenReady } from './connections.ts'

/** The first version with XTRIM MINID, which trims the logs. BullMQ needs less. */
const oldestVersion = [6, 2] as const
/** The first version with SPUBLISH, which pushes to the viewers of a cluster. */
const oldestCluster = [7, 0] as const
const retryMs = 500

export type RedisMemory = {
  usedBytes: number
  /** 0 means no limit. */
  maxBytes: number
  /** Null when the server does not report it. */
  policy: string | null
}

/** Resolves with null or a warning when Redis is usable; rejects with a message that names what to change. */
export async function requireFitRedis(redis: RedisConnection, signal: AbortSignal): Promise<string | null> {
  for (;;) {
    await whenReady(redis, signal)
    const info = await redis.info().catch(throwIfForbidden)
    if (info !== null) return judge(info)
    await sleep(retryMs, undefined, { signal })
  }
}

export async function readRedisMemory(redis: RedisConnection): Promise<RedisMemory> {
  return memoryIn(await redis.info('memory'))
}

/** The reason why a maxmemory-policy is not usable, or null. */
export function whyPolicyIsUnfit(policy: string | null): string | null {
  if (policy === null || policy === 'noeviction') return null
  return `Redis may evict keys, and so lose jobs and output of agents: set its maxmemory-policy to noeviction (it is ${policy})`
}

/** Checks a reply to INFO. Throws when Redis is not usable; returns a warning or null. */
export function judge(info: string): string | null {
  const { policy } = memoryIn(info)
  const unfit = whyVersionIsUnfit(info) ?? whyPolicyIsUnfit(policy)
  if (unfit) throw new Error(unfit)
  return policy === null ? 'Redis does not report its maxmemory-policy; it must be noeviction' : null
}

/** Every Valkey is new enough: its first version is equal to Redis 7.2. */
function whyVersionIsUnfit(info: string): string | null {
  const version = fieldOf(info, 'redis_version')
  if (version === null || fieldOf(info, 'valkey_version') !== null) return null
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isCluster = fieldOf(info, 'redis_mode') === 'cluster'
  const oldest = isCluster ? oldestCluster : oldestVersion
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return null
  return `Redis ${version} is too old${isCluster ? ' for a cluster' : ''}: use Redis ${oldest.join('.')} or newer, or Valkey`
}

/** Throws when the user may not use INFO, because a retry would not help. For other errors the caller retries. */
function throwIfForbidden(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('NOPERM'))
    throw new Error('The user of REDIS_URL may not run INFO: allow it with ACL SETUSER <user> +info')
  return null
}

function memoryIn(info: string): RedisMemory {
  const bytes = (name: string) => Number(fieldOf(info, name) ?? 0)
  return { usedBytes: bytes('used_memory'), maxBytes: bytes('maxmemory'), policy: fieldOf(info, 'maxmemory_policy') }
}

function fieldOf(info: string, name: string): string | null {
  return new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1] ?? null
}
