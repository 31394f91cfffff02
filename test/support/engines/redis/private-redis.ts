/**
 * A Redis of a test's own, that may be emptied, frozen, killed, cut short and started again at the same address.
 * Only a server from PATH keeps an append-only file: tests that need one are skipped without such a server, with that reason.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, startRedis } from '@rivulet/engines'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { until } from '../../until.ts'
import { hasOpenssl } from '../certificate.ts'

/** The server from PATH, if one is used. It keeps an append-only file, and can be part of a cluster. */
export const nativeRedis = process.env.RIVULET_TEST_ENGINES === 'embedded' ? undefined : ['valkey-server', 'redis-server'].find(canRun)
export const hasNativeRedis = nativeRedis !== undefined

/** Why no servers with TLS can be started on this machine, or null. */
export const whyNoTlsServers =
  nativeRedis === undefined ? 'no redis-server or valkey-server on PATH' : hasOpenssl ? null : 'no openssl on PATH, to make a certificate'

export type PrivateRedis = {
  url: string
  isNative: boolean
  client: Redis
  freeze(): void
  wake(): void
  /** Where its append-only file ends now. */
  mark(): number
  /** Ends at once, as if the power was lost. */
  kill(): Promise<void>
  /** Begins again with its file as long as it was at a mark; what came after is lost. Without a mark nothing is. */
  restart(mark?: number): Promise<void>
  close(): Promise<void>
}

export async function startPrivateRedis(): Promise<PrivateRedis> {
  const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-redis-'))
  const options = { dataDir, path: process.env.PATH, prefer: hasNativeRedis ? ('native' as const) : ('embedded' as const) }
  let engine: Engine = await startRedis(options)
  const { url, kind } = engine
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  await writeAtOnce()
  return {
    url,
    isNative: kind === 'native',
    client,
    freeze: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
    mark,
    kill,
    restart,
    close,
  }

  function mark(): number {
    return statSync(appendOnlyFile()).size
  }

  async function kill(): Promise<void> {
    signal('SIGKILL')
    // Its guardian has nothing left to guard, and says so.
    await engine.stop().catch(() => {})
  }

  async function restart(size?: number): Promise<void> {
    if (size !== undefined) truncateSync(appendOnlyFile(), size)
    engine = await startRedis({ ...options, port: Number(new URL(url).port) })
    await until('it responds again', () => client.status === 'ready')
    await writeAtOnce()
  }

  /** By default it holds back what it writes while its disk is busy, so that a kill loses more than the test cut off. */
  async function writeAtOnce(): Promise<void> {
    if (kind === 'native') await client.config('SET', 'appendfsync', 'always')
  }

  async function close(): Promise<void> {
    client.disconnect()
    await engine.stop().catch(() => {})
    rmSync(dataDir, { recursive: true, force: true })
  }

  function signal(name: NodeJS.Signals): void {
    if (engine.pid !== null) process.kill(engine.pid, name)
  }

  function appendOnlyFile(): string {
    const folder = join(dataDir, 'redis', 'appendonlydir')
    const name = readdirSync(folder).find(file => file.endsWith('.incr.aof'))
    if (!name) throw new Error(`${folder} holds no append-only file`)
    return join(folder, name)
  }
}

/** Closed when the test ends. */
export async function startRedisOfTest(): Promise<PrivateRedis> {
  const redis = await startPrivateRedis()
  onTestFinished(redis.close)
  return redis
}

function canRun(program: string): boolean {
  try {
    return /v=[7-9]|\bv=\d{2}/.test(execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  } catch {
    return false
  }
}
