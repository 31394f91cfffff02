/**
 * The whole platform for a test: API and worker processes as children, on the run's Redis and a fresh database.
 *
 * Rounds are short, so that what takes half a minute in production takes seconds here. A lease outlasts every stall of a busy machine, unless a test
 * is about workers that die (`shortLease`). When a test fails, what the processes wrote is printed. Everything is stopped when the platform is closed:
 * APIs cleanly, which has to succeed, workers at once.
 */
import { createKeys, type Keys } from '@rivulet/broker'
import { type Cursor, type Event, parseCursor, parseEvent } from '@rivulet/protocol'
import type { Redis } from 'ioredis'
import pg from 'pg'
import { inject } from 'vitest'
import { createTestDatabase, keyPrefix } from '../engines/database.ts'
import { onFailure } from '../engines/file-end.ts'
import { connectTestRedis } from '../engines/redis/test-redis.ts'
import { freePort } from '../free-port.ts'
import { until } from '../until.ts'
import { type Client, createClient } from './platform-client.ts'
import { bundleTree, type Installation, type PlatformProcess, startProcess, type Tree, tail } from './platform-process.ts'

/** Rounds are most of what an idle platform costs (0.09 of a core with two rounds of the reconciler a second), and most platforms of a run wait. */
export const knobs = { LEASE_MS: '20000', HEARTBEAT_MS: '1000', RECONCILE_MS: '2000', WORKER_DRAIN_MS: '10000' }

/** For tests in which workers die or freeze, because their turns go on elsewhere only when this is over. */
export const shortLease = { LEASE_MS: '4000', HEARTBEAT_MS: '500', RECONCILE_MS: '500' }

export type PlatformOptions = {
  /** Default 1. */
  apis?: number
  /** Default 1. */
  workers?: number
  /** For every process. */
  env?: Record<string, string>
  /** Whose programs are run. Default: this checkout. */
  tree?: Tree
  /** A migrated database that nothing else uses. Default: one of the run's Postgres. */
  databaseUrl?: string | undefined
}

type StartApiOptions = {
  env?: Record<string, string>
  port?: string
  untilReady?: boolean
  /** Whose program is run; a tree was bundled before. Default: that of the platform. */
  from?: Tree | Installation | undefined
}

export type ApiProcess = PlatformProcess & { url: string }

export type Platform = {
  /** The first API. */
  url: string
  urls: string[]
  apis: ApiProcess[]
  workers: PlatformProcess[]
  client: Client
  clientOf(api: ApiProcess): Client
  pg: pg.Pool
  redis: Redis
  keys: Keys
  databaseUrl: string
  /** What stands in a task's log. */
  log(task: string): Promise<{ cursor: Cursor; event: Event }[]>
  /** Another API; `port` lets it take the place of one that is gone. Ready when this resolves, unless it is not to be waited for. */
  startApi(options?: StartApiOptions): Promise<ApiProcess>
  /** Another worker of the first API. `from` as for an API. */
  startWorker(env?: Record<string, string>, from?: Tree | Installation): Promise<PlatformProcess>
  close(): Promise<void>
}

export async function withPlatform(options: PlatformOptions, use: (platform: Platform) => Promise<void>): Promise<void> {
  const platform = await startPlatform(options)
  try {
    await use(platform)
  } finally {
    await platform.close()
  }
}

export async function startPlatform({
  apis: apiCount = 1,
  workers: workerCount = 1,
  env = {},
  tree,
  databaseUrl: given,
}: PlatformOptions = {}): Promise<Platform> {
  const [{ url: databaseUrl }] = await Promise.all([given ? { url: given } : createTestDatabase(), tree && bundleTree(tree)])
  const prefix = env.REDIS_PREFIX ?? keyPrefix().replace(/:$/, '')
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  pool.on('error', () => {})
  const redis = connectTestRedis(inject('redisUrl'))
  const keys = createKeys(prefix)
  const shared = { ...knobs, RIVULET_EXAMPLE_AGENTS: 'on', REDIS_URL: inject('redisUrl'), REDIS_PREFIX: prefix, ...env }
  const processes: PlatformProcess[] = []
  const apis: ApiProcess[] = []
  const workers: PlatformProcess[] = []
  const forget = onFailure(showOutput)
  try {
    // All at once: most of the time that a start takes is spent on loading the program.
    const ports = await Promise.all(Array.from({ length: apiCount }, freePort))
    await Promise.all([
      ...ports.map(port => startApi({ port })),
      ...Array.from({ length: workerCount }, (_, i) => startWorker({ RIVULET_URL: `http://127.0.0.1:${ports[i % apiCount]}` })),
    ])
    // In a fixed order, whichever was ready first: the first API serves the first worker.
    apis.sort((a, b) => ports.indexOf(new URL(a.url).port) - ports.indexOf(new URL(b.url).port))
  } catch (error) {
    showOutput()
    await close().catch(() => {})
    throw error
  }
  const urls = apis.map(({ url }) => url)
  const url = urls[0] ?? ''
  return {
    ...{ url, urls, apis, workers, client: createClient(() => url), clientOf: api => createClient(() => api.url) },
    ...{ pg: pool, redis, keys, databaseUrl, log: task => readLog(redis, keys, task), startApi, startWorker, close },
  }

  function showOutput(): void {
    for (const { name, lines } of processes) console.error(`${name} wrote last:\n${tail(lines)}`)
  }

  async function startApi({ env: own = {}, port, untilReady = true, from = tree }: StartApiOptions = {}): Promise<ApiProcess> {
    const address = { DATABASE_URL: databaseUrl, PORT: port ?? (await freePort()) }
    const started = startProcess('api', `api ${processes.length + 1}`, { ...address, ...shared, ...own }, from)
    processes.push(started)
    const { url: listening } = await started.said('api is listening')
    const api = { ...started, url: String(listening) }
    apis.push(api)
    if (untilReady) await until(`${api.name} is ready`, async () => (await fetch(`${api.url}/readyz`).catch(() => null))?.ok)
    return api
  }

  async function startWorker(own: Record<string, string> = {}, from: Tree | Installation | undefined = tree): Promise<PlatformProcess> {
    const settings = { RIVULET_URL: apis[0]?.url ?? '', ...shared, ...own }
    // All worker processes of a run work over HTTP with `RIVULET_TRANSPORT=http npx vitest run …`, and then cannot find Redis.
    const { RIVULET_TRANSPORT: transport = process.env.RIVULET_TRANSPORT } = settings as Record<string, string>
    const withoutRedis = transport === 'http' && { REDIS_URL: '' }
    const worker = startProcess('worker', `worker ${processes.length + 1}`, { ...settings, ...withoutRedis }, from)
    processes.push(worker)
    workers.push(worker)
    await worker.said('worker is ready')
    return worker
  }

  async function close(): Promise<void> {
    forget()
    const others = processes.filter(({ hasExited, name }) => !hasExited() && !name.startsWith('api'))
    await Promise.all(others.map(worker => worker.kill()))
    const stops = await Promise.all(processes.filter(({ hasExited }) => !hasExited()).map(stopCleanly))
    redis.disconnect()
    await untilAlone()
    await pool.end()
    const unclean = stops.filter(stop => stop !== null)
    if (unclean.length > 0) throw new Error(unclean.join('\n'))
  }

  /** Postgres notices the end of a client a moment later; a database that is in use cannot be dropped. */
  async function untilAlone(): Promise<void> {
    await until('the connections to the database are gone', async () => {
      const { rows } = await pool.query('select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()')
      return rows.length < pool.totalCount
    })
  }
}

/** What stands in a task's log, on the Redis that this client is connected to. */
export async function readLog(redis: Redis, keys: Keys, task: string): Promise<{ cursor: Cursor; event: Event }[]> {
  const rows = await redis.xrange(keys.stream(task), '-', '+')
  return rows.map(([id, fields]) => {
    const cursor = parseCursor(id)
    const event = parseEvent(JSON.parse(fields[fields.indexOf('event') + 1] ?? ''))
    if (!cursor || !event) throw new Error(`The log holds something that is no event: ${id} ${fields.join(' ')}`)
    return { cursor, event }
  })
}

/** What was wrong with the way in which an API stopped, or null. */
async function stopCleanly(api: PlatformProcess): Promise<string | null> {
  const impatience = setTimeout(() => void api.kill('SIGKILL'), 300_000)
  const { code, signal } = await api.kill('SIGTERM')
  clearTimeout(impatience)
  return code === 0 ? null : `${api.name} ended with ${signal ?? code} after SIGTERM:\n${tail(api.lines)}`
}
