/**
 * One Redis and one Postgres for a run of the tests (vitest's globalSetup), in a folder that goes with it.
 *
 * A run that leaves something behind fails: a client of either server, or a process that a test started. Processes are known by a variable
 * in their environment, which reaches whatever a test starts, also when its parent is gone.
 *
 * RIVULET_TEST_ENGINES=embedded leaves PATH aside; RIVULET_TEST_KEEP=1 keeps the folder.
 */
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Engine, startPostgres, startRedis } from '@rivulet/engines'
import type { TestProject } from 'vitest/node'
import { leftoverPostgresClients, leftoverProcesses, leftoverRedisClients, runVariable } from './leftovers.ts'

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string
    postgresUrl: string
  }
}

/** How long what a test has closed may take to be gone. */
const patienceMs = 5_000

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-test-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  const options = {
    dataDir: folder,
    path: process.env.PATH,
    prefer: process.env.RIVULET_TEST_ENGINES === 'embedded' ? ('embedded' as const) : undefined,
  }
  const [redis, postgres] = await Promise.all([startRedis(options), startPostgres(options)])
  console.log(`Tests use ${redis.description}\n      and ${postgres.description}`)
  project.provide('redisUrl', redis.url)
  project.provide('postgresUrl', postgres.url)
  const run = randomUUID()
  process.env[runVariable] = run

  return async () => {
    const leftovers = await waitForNone(() => findLeftovers(run, redis, postgres))
    await Promise.all([redis.stop(), postgres.stop()])
    if (process.env.RIVULET_TEST_KEEP === '1') console.log(`Kept ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
    if (leftovers.length === 0) return
    // vitest only prints what a teardown throws.
    process.exitCode = 1
    throw new Error(`The tests left behind:\n${leftovers.map(leftover => `  ${leftover}`).join('\n')}`)
  }
}

async function findLeftovers(run: string, redis: Engine, postgres: Engine): Promise<string[]> {
  const found = await Promise.all([leftoverProcesses(run), leftoverRedisClients(redis.url), leftoverPostgresClients(postgres.url)])
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
