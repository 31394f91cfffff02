/**
 * Consumers of turns whose Redis vanishes while they wait for a job, and takes seconds to be noticed. The cluster is one server with all slots: like a
 * cluster of any size, it is down while one slot has no server.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { keyPrefix } from '../../../test/support/engines/database.ts'
import { nativeRedis } from '../../../test/support/engines/redis/private-redis.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { newTask } from '../../../test/support/platform/logs.ts'
import { until } from '../../../test/support/until.ts'
import { startProxy } from '../../../test/support/viewers/proxy.ts'
import { connectRedis, type RedisConnection } from './connections.ts'
import { createKeys } from './keys.ts'
import { createTurnConsumer, createTurnQueue } from './turn-queue.ts'

const onError = () => {}

test('a consumer takes turns again after its server vanished without closing the connections', async () => {
  const proxy = await startProxy(inject('redisUrl'))
  onTestFinished(proxy.close)
  const { send, taken } = await consume(connectTo(inject('redisUrl')), connect(proxy.url))
  proxy.strand()
  const turnId = await send()
  await expect.poll(() => taken).toContain(turnId)
})

test.skipIf(!nativeRedis)('a consumer takes turns again after its master vanished, and the cluster was down for a moment', async () => {
  const server = connectTo(await startClusterOfOne())
  const proxy = await startProxy(`redis://127.0.0.1:${server.options.port}`)
  onTestFinished(proxy.close)
  await server.config('SET', 'cluster-announce-ip', '127.0.0.1', 'cluster-announce-port', proxy.port)
  // The same address twice, because a URL of several servers is a cluster.
  const cluster = connect(`${proxy.url},127.0.0.1:${proxy.port}`) as Cluster
  const duplicated = duplicateOf(cluster)
  const { send, taken } = await consume(server, cluster)
  const waiting = await duplicated
  proxy.strand()
  await server.call('CLUSTER', 'DELSLOTS', 0)
  await once(waiting, 'end')
  // The consumer has connected while the cluster is down: the connection is used as it is, or opened again.
  await Promise.race([once(waiting, 'ready'), once(waiting, 'reconnecting')])
  await server.call('CLUSTER', 'ADDSLOTS', 0)
  const turnId = await until('the cluster is up', () => send().catch(() => null))
  await expect.poll(() => taken).toContain(turnId)
})

/** A consumer that has taken a turn. `direct` sends turns, and is not disturbed. */
async function consume(direct: Redis, blocking: RedisConnection) {
  const keys = createKeys(keyPrefix().replace(/:$/, ''))
  const taken: string[] = []
  const queue = createTurnQueue({ redis: direct, keys, onError })
  const run = async (turnId: string) => {
    taken.push(turnId)
    return 'done' as const
  }
  const consumer = createTurnConsumer({ queue: 'a', redis: blocking, keys, concurrency: 1, run, onError })
  onTestFinished(async () => {
    await consumer.close()
    await queue.close()
  })
  const first = await send()
  await expect.poll(() => taken).toContain(first)
  return { send, taken }

  async function send(): Promise<string> {
    const turnId = newTask()
    await queue.enqueue([{ turnId, agent: 'a', dispatch: 1, delayMs: 0, priority: 0 }])
    return turnId
  }
}

function connect(url: string): RedisConnection {
  const redis = connectRedis('blocking', { url, onError })
  onTestFinished(() => redis.disconnect())
  return redis
}

function connectTo(url: string): Redis {
  const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  redis.on('error', onError)
  onTestFinished(() => redis.disconnect())
  return redis
}

/** The connection on which BullMQ waits for jobs. */
function duplicateOf(cluster: Cluster): Promise<Cluster> {
  return new Promise(resolve => {
    const duplicate = cluster.duplicate.bind(cluster)
    cluster.duplicate = (...args) => {
      const copy = duplicate(...args)
      resolve(copy)
      return copy
    }
  })
}

async function startClusterOfOne(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'rivulet-cluster-'))
  const [port, busPort] = [await freePort(), await freePort()]
  const options = { port, dir, bind: '127.0.0.1', save: '', 'cluster-enabled': 'yes', 'cluster-port': busPort }
  const server = spawn(
    nativeRedis ?? '',
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
    { stdio: 'ignore' },
  )
  onTestFinished(async () => {
    const exited = once(server, 'exit')
    server.kill('SIGKILL')
    await exited
    rmSync(dir, { recursive: true, force: true })
  })
  const url = `redis://127.0.0.1:${port}`
  const client = connectTo(url)
  await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
  await until('it serves all slots', async () => String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))
  return url
}
