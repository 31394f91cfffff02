/**
 * Connections by Sentinels that disagree. Each Sentinel is a real one and watches a server of its own, with the configuration epoch that the test wants; so
 * they do not know each other, and none corrects another.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { hasNativeRedis, nativeRedis } from '../../../test/support/engines/redis/private-redis.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { until } from '../../../test/support/until.ts'
import { createChannels } from './channels.ts'
import { connectRedis, type RedisRole, whenReady } from './connections.ts'

describe.skipIf(!hasNativeRedis)(`Sentinels${hasNativeRedis ? '' : ' (skipped: no redis-server or valkey-server on PATH)'}`, () => {
  let low: Program
  let high: Program

  beforeAll(async () => {
    const servers = await Promise.all(['low', 'high'].map(startServer))
    ;[low, high] = servers as [Program, Program]
    return async () => void (await Promise.all(servers.map(({ end }) => end())))
  })

  test('the master of the highest epoch is taken, and stays when only a Sentinel of a lower epoch replies', async () => {
    const [behind, current] = await Promise.all([startSentinel(low, 3), startSentinel(high, 5)])
    const redis = connect('command', [behind, current])
    await expectName(redis, 'high')
    await current.end()
    redis.disconnect(true)
    await once(redis, 'close')
    await expectName(redis, 'high')
    const other = connect('command', [behind, current])
    await expectName(other, 'high')
  })

  test('connections leave a master when a higher epoch has another, also one that sends nothing and one that BullMQ duplicates', async () => {
    const [first, second] = await Promise.all([startSentinel(low, 3), startSentinel(low, 3)])
    const [command, subscriber, blocking] = (['command', 'subscriber', 'blocking'] as const).map(role => connect(role, [first, second]))
    const duplicate = (blocking as Redis).duplicate()
    duplicate.on('error', () => {})
    onTestFinished(() => duplicate.disconnect())
    await Promise.all([command, subscriber, blocking, duplicate].map(redis => whenReady(redis as Redis)))
    await expectName(command as Redis, 'low')
    await (subscriber as Redis).subscribe('channel')
    const waiting = duplicate.blpop('list', 0)
    const left = [subscriber, duplicate].map(redis => once(redis as Redis, 'ready'))
    await second.end()
    await startSentinel(high, 4, second.port)
    await Promise.all(left)
    await Promise.all([
      expectName(command as Redis, 'high'),
      expectName(blocking as Redis, 'high'),
      expectName(subscriber as Redis, 'high'),
    ])
    await clientOf(high).rpush('list', 'value')
    expect(await waiting).toEqual(['list', 'value'])
  })

  test('a Sentinel that is frozen delays a connection, and does not prevent it', async () => {
    const [frozen, current] = await Promise.all([startSentinel(low, 3), startSentinel(high, 5)])
    frozen.process.kill('SIGSTOP')
    await expectName(connect('command', [frozen, current]), 'high')
  })

  test('a replica that a Sentinel names is not used', async () => {
    const replica = await startServer('replica')
    onTestFinished(replica.end)
    await clientOf(replica).call('REPLICAOF', '127.0.0.1', high.port)
    const redis = connect('command', [await startSentinel(replica, 3)])
    await until('the replica was tried', () =>
      redis.errors.some(({ message }) => message === `127.0.0.1:${replica.port} is not a master, although Sentinels name it`),
    )
    expect(redis.status).not.toBe('ready')
    await clientOf(replica).call('REPLICAOF', 'NO', 'ONE')
    await expectName(redis, 'replica')
  })

  test('without a Sentinel that replies, the error names each of them and its reason, and a connection follows once one is there', async () => {
    const port = await freePort()
    const stranger = await startSentinel(low, 3, undefined, 'other')
    const redis = connect('command', [{ port }, stranger])
    const isNamed = ({ message }: Error) =>
      message.startsWith('No Sentinel knows the master main: ') &&
      new RegExp(`127\\.0\\.0\\.1:${port}: .*ECONNREFUSED`).test(message) &&
      message.includes(`127.0.0.1:${stranger.port}: ERR No such master with that name`)
    await until('the reason was reported', () => redis.errors.some(isNamed))
    await startSentinel(low, 3, port)
    await expectName(redis, 'low')
  })

  test('a channel that is subscribed to as soon as a connection opens is no failure', async () => {
    const redis = connect('subscriber', [await startSentinel(high, 5)])
    const channels = createChannels(redis)
    for (const channel of ['first', 'second', 'third']) {
      await once(redis, 'connect')
      await channels.hear(channel, { handle: () => {}, isSharded: true }).catch(() => {})
      await whenReady(redis)
      const client = clientOf(high)
      await until('it is heard', async () => (await client.publish(channel, '')) === 1)
      redis.disconnect(true)
    }
    expect(redis.errors).toEqual([])
  })

  test('the last connection that is closed leaves no connection to a Sentinel', async () => {
    const sentinel = await startSentinel(low, 3)
    const [one, other] = [connect('command', [sentinel]), connect('subscriber', [sentinel])]
    await Promise.all([whenReady(one), whenReady(other)])
    const admin = clientOf(sentinel)
    const clients = async () =>
      String(await admin.call('CLIENT', 'LIST'))
        .split('\n')
        .filter(line => line.includes('id=')).length
    await until('the Sentinel is watched', async () => (await clients()) === 2)
    one.disconnect()
    await once(one, 'end')
    expect(await clients()).toBe(2)
    other.disconnect()
    await until('the Sentinel is alone', async () => (await clients()) === 1)
  })
})

type Program = { port: string; process: ChildProcess; end(): Promise<void> }
type Connection = Redis & { errors: Error[] }

function connect(role: RedisRole, sentinels: readonly { port: string }[]): Connection {
  const errors: Error[] = []
  const url = `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/main`
  const redis = connectRedis(role, { url, onError: error => errors.push(error) }) as Redis
  onTestFinished(() => redis.disconnect())
  return Object.assign(redis, { errors })
}

/** By the port that it is connected to, because a subscriber cannot read a key. */
async function expectName(redis: Redis, name: string): Promise<void> {
  await whenReady(redis)
  const { remotePort } = redis.stream as { remotePort?: number }
  const client = clientOf({ port: String(remotePort) })
  expect(await client.get('name')).toBe(name)
}

function clientOf({ port }: { port: string }): Redis {
  const client = new Redis(Number(port), { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

async function startServer(name: string): Promise<Program> {
  const port = await freePort()
  const server = start(port, ['save ""'])
  const client = new Redis(Number(port), { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  await client.set('name', name)
  client.disconnect()
  return server
}

async function startSentinel({ port: server }: { port: string }, epoch: number, port?: string, masterName = 'main'): Promise<Program> {
  const settings = [`sentinel monitor ${masterName} 127.0.0.1 ${server} 2`, `sentinel config-epoch ${masterName} ${epoch}`]
  const sentinel = start(port ?? (await freePort()), settings, ['--sentinel'])
  onTestFinished(sentinel.end)
  const client = clientOf(sentinel)
  await client.ping()
  client.disconnect()
  return sentinel
}

function start(port: string, settings: readonly string[], args: readonly string[] = []): Program {
  const dir = mkdtempSync(join(tmpdir(), 'rivulet-sentinel-'))
  const file = join(dir, 'redis.conf')
  writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, ...settings, ''].join('\n'))
  const process = spawn(nativeRedis ?? '', [file, ...args], { stdio: 'ignore' })
  const exited = once(process, 'exit')
  return { port, process, end }

  async function end(): Promise<void> {
    process.kill('SIGKILL')
    await exited
    rmSync(dir, { recursive: true, force: true })
  }
}
