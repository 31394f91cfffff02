/** Rivulet's API and worker processes, bundled as for production, with keys required. */
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import { bundlePrograms } from '../scripts/bundle.ts'
import { freePort } from '../test/support/free-port.ts'
import { until } from '../test/support/until.ts'
import { type Child, spawnChild } from './child.ts'
import type { World } from './contestant.ts'
import { familyOf } from './measure/cpu.ts'
import { createPoster } from './measure/poster.ts'
import type { SpeakerParams } from './programs/speaker-agent.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const key = 'a-key-of-the-bench-0123456789'
const workerKey = 'a-worker-key-of-the-bench-0123456789'
export const authorization = { authorization: `Bearer ${key}` }

/** The limits must not reject any client of the load. */
const limits = {
  ...{ RATE_LIMIT_PER_SECOND: '1000000', RATE_LIMIT_BURST: '1000000', MAX_STREAMS_PER_TASK: '100000' },
  ...{ RATE_LIMIT_TENANT_PER_SECOND: '1000000', RATE_LIMIT_TENANT_BURST: '1000000', MAX_STREAMS_PER_TENANT: '100000' },
  ...{ MAX_STREAMS_PER_KEY: '100000', MAX_STREAMS: '100000', MAX_CONNECTIONS: '110000' },
}

type Api = { url: string; pid: number; child: Child }

export type Platform = {
  /** The first of `apis`; tasks are posted to it. */
  api: Api
  apis: Api[]
  redisPrefix: string
  /** The first of `workers`. */
  worker: Child
  workers: Child[]
  pg: pg.Pool
  /** Resolves with the response body. */
  post<Body>(path: string, body: unknown): Promise<Body>
  createTask(params: SpeakerParams): Promise<string>
  close(): Promise<void>
}

export type PlatformOptions = {
  /** Concurrent turns of each worker. */
  concurrency: number
  /** How many API processes, and how many workers. Default 1. */
  ofEach?: number
  /** Concurrent POSTs. Default 50. */
  inFlight?: number
  env?: Record<string, string>
  /** Whether the API has a probe for event loop lag and garbage collection. The worker always has one. */
  isProbed?: boolean
}

/** Starts a platform with its own database. */
export async function startPlatform(
  world: World,
  { concurrency, ofEach = 1, inFlight = 50, env = {}, isProbed = false }: PlatformOptions,
): Promise<Platform> {
  const prefix = `bench-${Date.now().toString(36)}`
  const databaseUrl = await createDatabase(world, prefix)
  const shared = { REDIS_URL: world.redisUrl, REDIS_PREFIX: prefix, RIVULET_WORKER_KEY: workerKey, RIVULET_KEY: key, ...env }
  const named = (program: string) => (world.profiles ? profiling(world.profiles, `${program}-${prefix}`) : [])
  const ports = await Promise.all(Array.from({ length: ofEach }, freePort))
  const apis = ports.map(startApi)
  const workers = apis.map(startWorker)
  const [api, worker] = [apis[0] as Api, workers[0] as Child]
  const { url } = api
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  pool.on('error', () => {})
  const poster = createPoster(url, { inFlight, headers: authorization })
  try {
    await until('the platform is ready', isReady, { timeoutMs: 60_000 })
  } catch (error) {
    await close()
    throw error
  }
  return { api, apis, redisPrefix: prefix, worker, workers, pg: pool, post: poster.post, createTask, close }

  function startApi(port: string): Api {
    const probe = isProbed ? ['--import', pathToFileURL(join(world.folder, 'api-probe/main.mjs')).href] : []
    const child = spawnChild(join(world.folder, 'api/main.mjs'), {
      execArgv: [...named(`api-${port}`), ...probe],
      env: { ...shared, ...limits, DATABASE_URL: databaseUrl, PORT: port },
    })
    return { url: `http://127.0.0.1:${port}`, pid: child.pid, child }
  }

  function startWorker({ url }: Api, place: number): Child {
    return spawnChild(join(world.folder, 'worker/main.mjs'), {
      execArgv: named(`worker-${place}`),
      args: [join(world.folder, 'speaker/main.mjs')],
      env: { ...shared, RIVULET_URL: url, WORKER_CONCURRENCY: String(concurrency) },
    })
  }

  async function isReady(): Promise<boolean> {
    for (const child of [...apis.map(({ child }) => child), ...workers]) child.checkAlive()
    const response = await fetch(`${url}/v1/agents`, { headers: authorization }).catch(() => null)
    if (!response?.ok) return false
    const { data } = (await response.json()) as { data: { name: string; workers: number }[] }
    return data.some(({ name, workers }) => name === 'speaker' && workers === ofEach)
  }

  async function createTask(params: SpeakerParams): Promise<string> {
    const { task } = await poster.post<{ task: { id: string } }>('/v1/tasks', { agent: 'speaker', params })
    return task.id
  }

  async function close(): Promise<void> {
    poster.close()
    // SIGKILL, because waiting turns would delay the shutdown of a worker by their whole grace period.
    const apart = workers.flatMap(({ pid: own }) => familyOf(own).filter(pid => pid !== own))
    await Promise.all(workers.map(each => each.stop(world.profiles ? 'SIGTERM' : 'SIGKILL')))
    for (const pid of apart) endProcess(pid)
    await Promise.all(apis.map(({ child }) => child.stop()))
    await pool.end()
  }
}

/** Bundles the programs and the agent once for all platforms of a bench. */
export function bundle(folder: string): Promise<void> {
  return bundlePrograms({
    root,
    out: folder,
    also: { speaker: 'bench/programs/speaker-agent.ts', 'api-probe': 'bench/programs/api-probe.ts' },
  })
}

/** A turn that ran in its own process has no parent after its worker has ended. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

function profiling(folder: string, name: string): string[] {
  return ['--cpu-prof', '--cpu-prof-interval', '500', '--cpu-prof-dir', folder, '--cpu-prof-name', `${name}.cpuprofile`]
}

async function createDatabase({ databaseUrl }: World, prefix: string): Promise<string> {
  const name = prefix.replaceAll('-', '_')
  const admin = new pg.Client({ connectionString: databaseUrl })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${name}`)
  await admin.end()
  return Object.assign(new URL(databaseUrl), { pathname: `/${name}` }).href
}
