/** Connections to a Redis that is gone without a word, on a real Redis behind a proxy. */
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { freePort } from '../../../test/support/free-port.ts'
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

test('a channel that is subscribed to as soon as a connection opens is no failure', async () => {
  const errors: string[] = []
  const redis = connectRedis('subscriber', { url: inject('redisUrl'), onError: ({ message }) => errors.push(message) })
  onTestFinished(() => redis.disconnect())
  for (const channel of ['first', 'second', 'third']) {
    await once(redis, 'connect')
    expect(await redis.subscribe(channel).catch(String)).toBe(1)
    await whenReady(redis)
    redis.disconnect(true)
  }
  expect(errors).toEqual([])
})

test('a subscriber whose connection breaks before Redis has replied to anything connects again', async () => {
  const proxy = await startProxy(inject('redisUrl'))
  onTestFinished(proxy.close)
  proxy.slow({ latencyMs: 100 })
  const redis = connectRedis('subscriber', { url: proxy.url, onError: () => {} })
  onTestFinished(() => redis.disconnect())
  let breaks = 0
  redis.on('connect', () => {
    if (breaks === 5) return
    breaks += 1
    proxy.reset()
  })
  await expect.poll(() => breaks).toBe(5)
  await expect.poll(() => redis.subscribe('channel').catch(String)).toBe(1)
})

test('a server of a cluster that vanished while slots move does not end the process', async () => {
  const [port, other] = [await freePort(), await freePort()]
  const cluster = connectRedis('command', { url: `redis://127.0.0.1:${port},127.0.0.1:${other}`, onError: () => {} })
  const vanished = new Redis({ port: Number(port), lazyConnect: true, enableOfflineQueue: false })
  onTestFinished(() => [cluster, vanished].forEach(each => void each.disconnect()))
  vanished.on('error', () => {})
  cluster.emit('+node', vanished)
  await expect(vanished.ping()).rejects.toThrow('writeable')
  await vanished.asking()
})

type Connection = ReturnType<typeof connectRedis>
