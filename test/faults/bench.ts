/**
 * The platform with everything between it and its servers in our hands: a Redis and a Postgres behind proxies, two APIs and two workers of an
 * armed tree, clients and workers that keep journals. Another module injects the faults (`nemesis.ts`); afterwards it comes to rest
 * and hands out its history.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { failpoints } from '@rivulet/runtime/failpoint'
import type { Redis } from 'ioredis'
import type { Program } from '../../scripts/bundle.ts'
import type { PostgresPair } from '../support/engines/postgres-pair.ts'
import { type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { freePort } from '../support/free-port.ts'
import type { LoggedEvent } from '../support/judge/task-laws.ts'
import { type ApiProcess, type Platform, readLog, startPlatform } from '../support/platform/platform.ts'
import { type Installation, type PlatformProcess, type Tree, tail } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'
import { type ArmedTree, type Change, createArmedTree } from './armed-tree.ts'
import { type History, readClients, readWorkers, type Stored } from './checker/history.ts'
import { type Crowd, createCrowd } from './crowd.ts'

/** Several servers that act as one Redis, with a URL for each program, and the variables that both need to reach it. */
type FaultyRedis = { urls: Record<Program, string>; env: Record<string, string>; client(): Promise<Redis>; close(): Promise<void> }

export type BenchOptions = {
  /** Default 2. */
  apis?: number
  /** Default 2. */
  workers?: number
  /** Instead of one Redis. The bench closes it. */
  several?: FaultyRedis | undefined
  /** Instead of a database of the run. The bench closes it. */
  pair?: PostgresPair | undefined
  /** An empty or migrated database, instead of one of the run. */
  databaseUrl?: string | undefined
  /** Whose programs run at first, instead of those of the armed tree. */
  before?: Installation
  /** Rules that are switched off. Default none. */
  changes?: readonly Change[]
  env?: Record<string, string>
}

export type Bench = {
  platform: Platform
  /** The one Redis, and the way to it. A bench on several servers has neither. */
  server: PrivateRedis
  redis: FaultyProxy
  postgres: FaultyProxy
  tree: ArmedTree
  /** The clients, since `begin`. */
  crowd: Crowd
  /** Other clients, who know these APIs, and a history of their own: what happened before is over. Default: all APIs. */
  begin(known?: readonly string[]): void
  /** Where each API listens, also when it is not there. */
  urls: string[]
  apis(): ApiProcess[]
  workers(): PlatformProcess[]
  /** `env` may arm failpoints. */
  startApi(url: string, env?: Record<string, string>): Promise<ApiProcess>
  startWorker(env?: Record<string, string>): Promise<PlatformProcess>
  /** Replaces the APIs or the workers, one after the other, by those of the armed tree or of an installation. */
  deploy(part: Program, from: Tree | Installation): Promise<void>
  /** The next process that is started has a failpoint that does this. */
  arm(how: string, random: () => number): void
  /** Starts anew what is gone; without a failpoint what had one, if that is wanted. */
  revive(options?: { disarm?: boolean }): Promise<void>
  /** Redis has lost something: from now on, logs prove nothing. */
  noteLoss(): void
  /** How the appends of a task were answered so far. */
  results(task: string): string[]
  /** Waits until nothing is left to come, and reads everything. Never fails for what the platform did: that is the checker's to say. */
  rest(): Promise<History>
  /** The end of what each process wrote. */
  tails(): string
  close(options?: { keepJournals?: boolean }): Promise<string>
}

function alive<T extends PlatformProcess>(processes: readonly T[]): T[] {
  return processes.filter(({ hasExited }) => !hasExited())
}

function single<T>(part: T | null): T {
  if (part === null) throw new Error('This bench runs on several Redis servers')
  return part
}

/** How long a platform that has everything it needs may take to come to rest on a busy machine. */
const patience = { timeoutMs: 120_000, intervalMs: 100 }

export async function startBench(options: BenchOptions = {}): Promise<Bench> {
  const { apis = 2, workers = 2, several, pair, databaseUrl, before, changes = [], env = {} } = options
  const tree = createArmedTree(changes)
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-faults-'))
  const journals = join(folder, 'workers')
  mkdirSync(journals)
  const server = several ? null : await startPrivateRedis()
  const redis = server && (await startProxy(server.url))
  const platform = await startPlatform({
    apis: 0,
    workers: 0,
    tree,
    databaseUrl: pair?.url ?? databaseUrl,
    env: { LEASE_MS: '2500', ...several?.env, ...env },
  })
  const postgres = await startProxy(platform.databaseUrl)
  const urls = (await Promise.all(Array.from({ length: apis }, freePort))).map(port => `http://127.0.0.1:${port}`)
  let hasLost = false
  let chapters = 0
  let started = 0
  let nextTrap: string | null = null
  const origins: Record<Program, Tree | Installation> = { api: before ?? tree, worker: before ?? tree }
  const armed = new Set<PlatformProcess>()
  await Promise.all([...urls.map(url => startApi(url)), ...Array.from({ length: workers }, () => startWorker())])
  const bench: Bench = {
    ...{ platform, postgres, tree, crowd: newCrowd(), urls, begin, startApi, startWorker, deploy, arm, revive, rest, tails, close },
    get server() {
      return single(server)
    },
    get redis() {
      return single(redis)
    },
    results: task => readWorkers(journals, new Set([task])).appends.map(({ result }) => result),
    apis: () => alive(platform.apis),
    workers: () => alive(platform.workers),
    noteLoss: () => {
      hasLost = true
    },
  }
  return bench

  function begin(known?: readonly string[]): void {
    hasLost = false
    bench.crowd = newCrowd(known)
  }

  function newCrowd(known: readonly string[] = urls): Crowd {
    chapters += 1
    return createCrowd({ urls: known, file: join(folder, `clients-${chapters}.ndjson`) })
  }

  function redisUrlOf(program: Program): string {
    return several?.urls[program] ?? single(redis).url
  }

  function startApi(url: string, own: Record<string, string> = {}): Promise<ApiProcess> {
    const engines = { DATABASE_URL: postgres.url, REDIS_URL: redisUrlOf('api') }
    return platform.startApi({ port: new URL(url).port, env: { ...engines, ...own }, from: origins.api })
  }

  function startWorker(own: Record<string, string> = {}): Promise<PlatformProcess> {
    started += 1
    const servers = { RIVULET_URL: urls[started % urls.length] ?? '', REDIS_URL: redisUrlOf('worker') }
    return platform.startWorker({ ...servers, JOURNAL: journals, ...own }, origins.worker)
  }

  async function deploy(part: Program, from: Tree | Installation): Promise<void> {
    origins[part] = from
    for (const api of part === 'api' ? alive(platform.apis) : []) {
      await api.kill('SIGTERM')
      await startApi(api.url)
    }
    for (const worker of part === 'worker' ? alive(platform.workers) : []) {
      await startWorker()
      await worker.kill('SIGTERM')
    }
  }

  function arm(how: string, random: () => number): void {
    nextTrap = `${failpoints[Math.floor(random() * failpoints.length)]}=${how}`
  }

  async function revive({ disarm = false } = {}): Promise<void> {
    if (disarm) await Promise.all(Array.from(armed, process => process.kill()))
    const revivedApis = reviveApis()
    const idle = Array.from({ length: Math.max(0, workers - alive(platform.workers).length) })
    const revivedWorkers = Promise.all(idle.map(() => start(startWorker))).then(() => true)
    revivedWorkers.catch(() => {})
    await revivedApis
    // A worker is ready when its API has answered, and that may be killed by its failpoint meanwhile.
    while (!(await Promise.race([revivedWorkers, sleep(200)]))) await reviveApis()
  }

  async function reviveApis(): Promise<void> {
    const missing = urls.filter(url => !alive(platform.apis).some(api => api.url === url))
    await Promise.all(missing.map(url => start(env => startApi(url, env))))
  }

  /** A failpoint may kill a process before it is ready: then it is missing again, and the next repair starts it. */
  async function start(begin: (env: Record<string, string>) => Promise<PlatformProcess>): Promise<void> {
    const trap = nextTrap
    nextTrap = null
    try {
      const process = await begin(trap ? { FAILPOINTS: trap } : {})
      if (trap) armed.add(process)
    } catch (error) {
      if (!trap) throw error
    }
  }

  async function rest(): Promise<History> {
    await until('every turn has ended, and said so', hasSettled, patience).catch(() => {})
    await bench.crowd.leave()
    const clients = readClients(bench.crowd.file)
    const promised = [...new Set(clients.promised.map(({ task }) => task))]
    const { rows } = await platform.pg.query<{ id: string }>('select id from tasks where id = any($1)', [promised])
    const tasks = rows.map(({ id }) => id)
    const stored: Stored[] = []
    for (const task of tasks) stored.push(await readStored(task))
    const logs = hasLost ? new Map<string, LoggedEvent[]>() : new Map(await Promise.all(tasks.map(readWholeLog)))
    return { ...clients, ...readWorkers(journals, new Set(tasks)), stored, logs, hasLost }
  }

  async function hasSettled(): Promise<boolean> {
    const { rows } = await platform.pg.query("select from turns where status in ('queued', 'running', 'waiting') or not announced limit 1")
    return rows.length === 0
  }

  async function readStored(task: string): Promise<Stored> {
    return until(`${task} can be read`, () => bench.crowd.read(task), patience)
  }

  async function readWholeLog(task: string): Promise<[string, LoggedEvent[]]> {
    return [task, await readLog(several ? await several.client() : single(server).client, platform.keys, task)]
  }

  function tails(): string {
    return [...platform.apis, ...platform.workers].map(({ name, lines }) => `${name} wrote last:\n${tail(lines, 25)}`).join('\n')
  }

  async function close({ keepJournals = false } = {}): Promise<string> {
    await bench.crowd.leave()
    for (const process of [...platform.apis, ...platform.workers]) process.wake()
    for (const proxy of [redis, postgres]) proxy?.up()
    await platform.close().finally(async () => {
      await Promise.all([redis?.close(), postgres.close()])
      await Promise.all([(several ?? server)?.close(), pair?.close()])
      tree.remove()
      if (!keepJournals) rmSync(folder, { recursive: true, force: true })
    })
    return folder
  }
}
