/** Connections to a Redis that is gone without a word, on a real Redis behind a proxy. */
import { expect, inject, onTestFinished, test } from 'vitest'
import { startProxy } from '../../../test/support/viewers/proxy.ts'
import { connectRedis, type RedisRole, whenReady } from './connections.ts'

test('a server that vanished without closing its connections gets new ones', async () => {
  const proxy = await startProxy(inject('redisUrl'))
  onTestFinished(proxy.close)
  const [command, subscriber] = (['command', 'subscriber'] as const).map(connect) as [Connection, Connection]
  await Promise.all([whenReady(command), whenReady(subscriber)])
  proxy.strand()
  await Promise.all([
    expect.poll(() => command.ping().catch(String)).toBe('PONG'),
    expect.poll(() => subscriber.subscribe('channel').catch(String)).toBe(1),
  ])

  function connect(role: RedisRole): Connection {
    const redis = connectRedis(role, { url: proxy.url, onError: () => {} })
    onTestFinished(() => redis.disconnect())
    return redis
  }
})

type Connection = ReturnType<typeof connectRedis>
