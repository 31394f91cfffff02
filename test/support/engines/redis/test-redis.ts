/**
 * The Redis of a run of the tests, as RIVULET_TEST_REDIS says: `cluster` is a cluster of three servers, `sentinel` a master with replicas and Sentinels,
 * without it one server.
 */
import { connectRedis } from '@rivulet/broker'
import { type Engine, type EngineOptions, startRedis } from '@rivulet/engines'
import { parseRedisUrl } from '@rivulet/runtime/redis-url'
import { Cluster, Redis } from 'ioredis'
import { startRedisCluster } from './redis-cluster.ts'
import { startRedisSentinels } from './redis-sentinels.ts'

/** `urls`: of each server. */
type TestRedis = Engine & { urls: string[] }

export async function startTestRedis(options: EngineOptions): Promise<TestRedis> {
  switch (process.env.RIVULET_TEST_REDIS) {
    case 'cluster':
      return startRedisCluster(options.dataDir)
    case 'sentinel':
      return startSentinels(options.dataDir)
    default: {
      const engine = await startRedis(options)
      return { ...engine, urls: [engine.url] }
    }
  }
}

async function startSentinels(folder: string): Promise<TestRedis> {
  // A busy machine shall not fail over.
  const { urls: ofPrograms, servers, close: stop } = await startRedisSentinels({ folder, downAfterMs: 15_000 })
  const url = ofPrograms.api
  const urls = servers.map(({ port }) => `redis://127.0.0.1:${port}`)
  const description = `a master and ${urls.length - 1} replicas with Sentinels at ${url}`
  return { url, urls, kind: 'native', description, pid: null, lost: new Promise(() => {}), stop }
}

/** A client of the run's Redis, whichever it is: the commands are the same. */
export function connectTestRedis(url: string): Redis {
  const { kind, addresses } = parseRedisUrl(url)
  switch (kind) {
    case 'single':
      return new Redis(url)
    case 'cluster':
      return new Cluster(addresses) as unknown as Redis
    case 'sentinel':
      return connectRedis('blocking', { url, onError: () => {} }) as Redis
    default:
      return kind satisfies never
  }
}

/** Where the run's Redis listens: its servers, or the Sentinels, which each process with a connection to the master asks. */
export function portsOf(url: string): number[] {
  return parseRedisUrl(url).addresses.map(({ port }) => port)
}
