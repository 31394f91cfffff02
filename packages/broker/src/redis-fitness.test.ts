import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { connectRedis, type RedisConnection } from './connections.ts'
import { judge, readRedisMemory, requireFitRedis } from './redis-fitness.ts'

const never = new AbortController().signal
const info = (version: string, policy = 'noeviction') =>
  `# Server\r\n${version}\r\nrun_id:x\r\n# Memory\r\nused_memory:10\r\nused_memory_rss:20\r\nmaxmemory:0\r\nmaxmemory_policy:${policy}\r\n`

test('the Redis of this run is usable, and its memory can be read', async () => {
  const redis = connect(inject('redisUrl'))
  expect(await requireFitRedis(redis, never)).toBeNull()
  const { usedBytes, maxBytes, policy } = await readRedisMemory(redis)
  expect(usedBytes).toBeGreaterThan(100_000)
  expect(maxBytes).toBeGreaterThanOrEqual(0)
  expect(policy).toBe('noeviction')
})

test.each(['redis_version:6.2.0', 'redis_version:7.0.15', 'redis_version:10.1', 'redis_version:5.0.0\r\nvalkey_version:9.1.0'])(
  '%s is new enough',
  version => {
    expect(judge(info(version))).toBeNull()
  },
)

test.each(['6.0.16', '5.0.7', '3.2'])('Redis %s is too old, and the message names the version to use', version => {
  expect(() => judge(info(`redis_version:${version}`))).toThrow(`Redis ${version} is too old: use Redis 6.2 or newer, or Valkey`)
})

test('a cluster needs a Redis that can shard its channels', () => {
  expect(() => judge(info('redis_version:6.2.14\r\nredis_mode:cluster'))).toThrow(/6\.2\.14 is too old for a cluster: use Redis 7\.0/)
  expect(judge(info('redis_version:7.0.0\r\nredis_mode:cluster'))).toBeNull()
})

test.each(['allkeys-lru', 'volatile-ttl'])('a policy of %s is rejected, and the message names the setting', policy => {
  expect(() => judge(info('redis_version:7.0.15', policy))).toThrow(/maxmemory-policy to noeviction/)
})

test('a server that does not report its policy is accepted with a warning', () => {
  expect(judge('# Server\r\nredis_version:7.2.4\r\n')).toMatch(/noeviction/)
})

test('for a user without INFO the message names the permission', async () => {
  const admin = new Redis(inject('redisUrl'))
  const user = `mute-${process.pid}`
  onTestFinished(async () => {
    await admin.call('ACL', 'DELUSER', user)
    admin.disconnect()
  })
  await admin.call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '+@all')
  const redis = connect(Object.assign(new URL(inject('redisUrl')), { username: user, password: 'secret' }).href)
  expect(await requireFitRedis(redis, never)).toBeNull()
  await admin.call('ACL', 'SETUSER', user, '-info')
  await expect(requireFitRedis(redis, never)).rejects.toThrow(/\+info/)
})

test('the check waits for a Redis that is unavailable, until it is aborted', async () => {
  const redis = connect('redis://127.0.0.1:1')
  const leaving = new AbortController()
  const waiting = requireFitRedis(redis, leaving.signal)
  leaving.abort(new Error('leaving'))
  await expect(waiting).rejects.toThrow('leaving')
})

function connect(url: string): RedisConnection {
  const redis = connectRedis('command', { url, onError: () => {} })
  onTestFinished(() => redis.disconnect())
  return redis
}
