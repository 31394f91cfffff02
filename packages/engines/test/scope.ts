/**
 * Helpers of the engines' tests: the kinds to run over, folders, callers in their own processes, and conditions to wait for.
 * Everything acquired here is released when the test ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, onTestFinished, vi } from 'vitest'
import { typeScriptLoader } from '../src/guardian/guardian-handle.ts'
import { isAlive, nameProcess, type ProcessName } from '../src/guardian/process-name.ts'
import { type Engine, type EngineOptions, startPostgres, startRedis } from '../src/index.ts'
import { findNativePostgres } from '../src/postgres/postgres-programs.ts'
import { findRedis } from '../src/redis/redis.ts'

const path = process.env.PATH ?? ''

export type Kind = { name: 'redis' | 'postgres'; kind: 'native' | 'embedded'; isMissing: boolean; label: string }

/** The engines that one suite runs over. A native server that is not on PATH is skipped, and the label mentions that. */
export const kinds: Kind[] = [
  describeKind('redis', 'native', (await findRedis(path)) === null),
  describeKind('redis', 'embedded', false),
  describeKind('postgres', 'native', (await findNativePostgres(path)).length === 0),
  describeKind('postgres', 'embedded', false),
]

function describeKind(name: Kind['name'], kind: Kind['kind'], isMissing: boolean): Kind {
  return { name, kind, isMissing, label: `${kind} ${name}${isMissing ? ' (skipped: none on PATH)' : ''}` }
}

/** Removed after the test. Open to other users, because Postgres runs as another user when this process is root. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-engines-'))
  chmodSync(folder, 0o755)
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Removed after the suite. Shared, because creating the data of a Postgres takes longer than most of its tests. */
export function shareFolder(): string {
  const folder = join(tmpdir(), `rivulet-engines-${randomUUID()}`)
  beforeAll(() => void mkdirSync(folder, { mode: 0o755 }))
  afterAll(() => rmSync(folder, { recursive: true }))
  return folder
}

export async function start(name: 'redis' | 'postgres', options: EngineOptions): Promise<Engine> {
  const engine = await (name === 'redis' ? startRedis : startPostgres)({ path, ...options })
  onTestFinished(() => engine.stop().catch(() => {}))
  return engine
}

export function connect(engine: { url: string }): Redis {
  const client = new Redis(engine.url, { maxRetriesPerRequest: null, retryStrategy: () => null })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

export async function query<Row extends pg.QueryResultRow>(engine: { url: string }, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: engine.url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}

export type Caller = { process: ChildProcess; reply: { started: Omit<Engine, 'stop'> } | { failed: string } }

/** Starts an engine from another process. */
export async function startCaller(
  name: 'redis' | 'postgres',
  options: EngineOptions,
  { file = callerFile, ...how }: CallerOptions = {},
): Promise<Caller> {
  const args = ['--import', typeScriptLoader(), file, name, JSON.stringify(options)]
  const caller = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: tmpdir(), ...how })
  let guardian: ProcessName | null = null
  onTestFinished(async () => {
    caller.kill('SIGKILL')
    if (caller.exitCode === null && caller.signalCode === null) await once(caller, 'exit')
    if (guardian) await untilGone(guardian)
  })
  for await (const line of createInterface({ input: caller.stdout })) {
    const reply = JSON.parse(line) as Caller['reply']
    if ('started' in reply) guardian = guardianOf(options.dataDir, name)
    return { process: caller, reply }
  }
  throw new Error('The caller printed nothing')
}

type CallerOptions = { file?: string; uid?: number; gid?: number; env?: NodeJS.ProcessEnv }

const callerFile = fileURLToPath(new URL('./caller.ts', import.meta.url))

export function startedBy(caller: Caller): Omit<Engine, 'stop'> & { pid: number } {
  if ('failed' in caller.reply) throw new Error(caller.reply.failed)
  const { pid } = caller.reply.started
  if (pid === null) throw new Error('The engine has no process')
  return { ...caller.reply.started, pid }
}

/** The latest guardian of an engine's folder, alive or dead; null when the folder never had one. */
export function guardianOf(dataDir: string, name: 'redis' | 'postgres'): ProcessName | null {
  const folder = join(dataDir, name)
  const lock = existsSync(folder) ? readdirSync(folder).find(entry => entry.startsWith('lock.')) : undefined
  return lock === undefined ? null : (readlinkSync(join(folder, lock)).split(' ')[0] as ProcessName)
}

type Keeper = { put(engine: { url: string }, value: string): Promise<void>; list(engine: { url: string }): Promise<string[]> }

/** A list stored in each engine, for tests that both share. `put` returns when a kill can no longer undo it. */
export const keepers: Record<'redis' | 'postgres', Keeper> = {
  redis: {
    async put(engine, value) {
      const client = connect(engine)
      await client.rpush('kept', value)
      // The embedded server saves about every second; a native one writes its append-only file.
      await vi.waitUntil(async () => {
        const info = await client.info('persistence')
        return info.includes('aof_enabled:1') || info.includes('rdb_changes_since_last_save:0')
      }, 10_000)
      client.disconnect()
    },
    async list(engine) {
      return await connect(engine).lrange('kept', 0, -1)
    },
  },
  postgres: {
    async put(engine, value) {
      await query(engine, `CREATE TABLE IF NOT EXISTS kept (value text); INSERT INTO kept VALUES ('${value}')`)
    },
    async list(engine) {
      return (await query<{ value: string }>(engine, 'SELECT value FROM kept')).map(row => row.value)
    },
  },
}

export function named(pid: number | null | undefined): ProcessName {
  const name = nameProcess(pid ?? 0)
  if (name === null) throw new Error(`No process ${pid}`)
  return name
}

export async function untilGone(...names: ProcessName[]): Promise<void> {
  await vi.waitUntil(() => !names.some(isAlive), { timeout: 20_000, interval: 10 })
}
