/**
 * One Redis and one Postgres for a run of the tests (vitest's globalSetup), and the platform's programs, in a folder that goes with it. All projects of
 * the run share them.
 *
 * A run that leaves something behind fails: a client of either server, or a process that a test started. Processes are known by a variable
 * in their environment, which reaches whatever a test starts, also when its parent is gone.
 *
 * RIVULET_TEST_REDIS=cluster or =sentinel makes the Redis one of several servers; RIVULET_TEST_ENGINES=embedded leaves PATH aside; RIVULET_TEST_KEEP=1 keeps
 * the folder.
 */
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Engine, startPostgres } from '@rivulet/engines'
import pg from 'pg'
import type { ProvidedContext } from 'vitest'
import type { TestProject } from 'vitest/node'
import { bundleFiles, bundlePrograms } from '../../../scripts/bundle.ts'
import { leftoverPostgresClients, leftoverProcesses, leftoverRedisClients, runVariable } from '../process/leftovers.ts'
import { startTestRedis } from './redis/test-redis.ts'

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string
    postgresUrl: string
    /** The folder with the bundles `api`, `worker` and `cli`, or why it is missing: only tests that start a program fail then. */
    programs: { folder: string; whyNot: string | null }
  }
}

/** How long what a test has closed may take to be gone. */
const patienceMs = 300_000

type RunEngines = { redisUrl: string; postgresUrl: string; programs: ProvidedContext['programs']; close(): Promise<void> }

/** Global, because each project loads this module for itself. */
const run = globalThis as { rivuletEngines?: { opening: Promise<RunEngines>; projects: number } }

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  run.rivuletEngines ??= { opening: openEngines(), projects: 0 }
  const engines = run.rivuletEngines
  engines.projects += 1
  const { close, ...provided } = await engines.opening
  project.provide('redisUrl', provided.redisUrl)
  project.provide('postgresUrl', provided.postgresUrl)
  project.provide('programs', provided.programs)
  return async () => {
    engines.projects -= 1
    if (engines.projects > 0) return
    delete run.rivuletEngines
    await close()
  }
}

async function openEngines(): Promise<RunEngines> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-test-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  const options = {
    dataDir: folder,
    path: process.env.PATH,
    prefer: process.env.RIVULET_TEST_ENGINES === 'embedded' ? ('embedded' as const) : undefined,
  }
  const programs = join(folder, 'programs')
  // Hundreds are started in a run, and from its sources each would take 1 to 2 s of CPU to load.
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const bundling = Promise.all([
    bundlePrograms({ root, out: programs, format: 'cjs' }),
    bundleFiles({
      ...{ root, out: programs, entries: { 'cli/main': 'apps/cli/src/main.ts' } },
      ...{ base: JSON.stringify(pathToFileURL(root).href), external: ['vite', './vite-config.ts'] },
    }),
  ])
  const [redis, postgres, whyNot] = await Promise.all([startTestRedis(options), startPostgres(options), bundling.then(() => null, String)])
  await relax(postgres)
  console.log(`Tests use ${redis.description}\n      and ${postgres.description}`)
  for (const { lost, description } of [redis, postgres]) void lost.then(how => console.error(`Lost ${description}: ${how}`))
  const runId = randomUUID()
  process.env[runVariable] = runId
  return { redisUrl: redis.url, postgresUrl: postgres.url, programs: { folder: programs, whyNot }, close }

  async function close(): Promise<void> {
    const leftovers = await waitForNone(() => findLeftovers(runId, redis.urls, postgres))
    await Promise.all([redis.stop(), postgres.stop()])
    if (process.env.RIVULET_TEST_KEEP === '1') console.log(`Kept ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
    if (leftovers.length === 0) return
    // vitest only prints what a teardown throws.
    process.exitCode = 1
    throw new Error(`The tests left behind:\n${leftovers.map(leftover => `  ${leftover}`).join('\n')}`)
  }
}

/**
 * No test cuts the power: without waiting for the disk, a commit takes an eighth of the time, and so does a new database. The owner needs no password here,
 * because to prove that it has one takes 7 ms of CPU for each of thousands of connections; the roles that tests create need theirs.
 */
async function relax({ url }: Engine): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('alter system set fsync = off')
  const { rows } = await client.query<{ hba_file: string }>('show hba_file')
  const { username } = new URL(url)
  writeFileSync(rows[0]?.hba_file ?? '', `host all ${username} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n`)
  await client.query('select pg_reload_conf()')
  await client.end()
}

async function findLeftovers(runId: string, redisUrls: readonly string[], postgres: Engine): Promise<string[]> {
  const found = await Promise.all([leftoverProcesses(runId), ...redisUrls.map(leftoverRedisClients), leftoverPostgresClients(postgres.url)])
  return found.flat()
}

async function waitForNone(find: () => Promise<string[]>): Promise<string[]> {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const found = await find()
    if (found.length === 0 || Date.now() > deadline) return found
    await delay(50)
  }
}
