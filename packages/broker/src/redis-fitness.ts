/**
 * Whether a Redis is one that we can rely on: it must not throw keys away, and it must know the commands of our scripts and of BullMQ.
 *
 * All of it is asked by INFO, which managed servers allow where they forbid CONFIG. A server that is away is waited for: only one that has
 * answered can be refused.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisConnection, whenReady } from './connections.ts'

/** XTRIM MINID, which trims the logs; BullMQ is content with less. */
const oldestVersion = [6, 2]
const retryMs = 500

export type RedisMemory = {
  usedBytes: number
  /** 0: no limit. */
  maxBytes: number
  /** Null where the server does not tell. */
  policy: string | null
}

/** Resolves when Redis fits, with a remark for people or null; rejects with a sentence that says what to change. */
export async function requireFitRedis(redis: RedisConnection, signal: AbortSignal): Promise<string | null> {
  for (;;) {
    await whenReady(redis, signal)
    const info = await redis.info().catch(refusalOrNull)
    if (info !== null) return judge(info)
    await sleep(retryMs, undefined, { signal })
  }
}

export async function readRedisMemory(redis: RedisConnection): Promise<RedisMemory> {
  return memoryIn(await redis.info('memory'))
}

/** What is wrong with a maxmemory-policy, or null. */
export function whyPolicyIsUnfit(policy: string | null): string | null {
  if (policy === null || policy === 'noeviction') return null
  return `Redis may evict keys, and with them jobs and what agents say: set its maxmemory-policy to noeviction (it is ${policy})`
}

/** What an answer to INFO amounts to: throws a sentence, or answers a remark. */
export function judge(info: string): string | null {
  const { policy } = memoryIn(info)
  const unfit = whyVersionIsUnfit(info) ?? whyPolicyIsUnfit(policy)
  if (unfit) throw new Error(unfit)
  return policy === null ? 'Redis does not say whether it may evict keys: its maxmemory-policy has to be noeviction' : null
}

/** Valkey began where Redis was at 7.2. */
function whyVersionIsUnfit(info: string): string | null {
  const version = fieldOf(info, 'redis_version')
  if (version === null || fieldOf(info, 'valkey_version') !== null) return null
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor = 0, oldestMinor = 0] = oldestVersion
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null
  return `Redis ${version} is too old: use Redis ${oldestVersion.join('.')} or newer, or Valkey`
}

/** A user who may not ask will never be told; everybody else asks again. */
function refusalOrNull(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('NOPERM'))
    throw new Error('The user of REDIS_URL may not ask Redis for INFO: allow it with ACL SETUSER <user> +info')
  return null
}

function memoryIn(info: string): RedisMemory {
  const bytes = (name: string) => Number(fieldOf(info, name) ?? 0)
  return { usedBytes: bytes('used_memory'), maxBytes: bytes('maxmemory'), policy: fieldOf(info, 'maxmemory_policy') }
}

function fieldOf(info: string, name: string): string | null {
  return new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1] ?? null
}
