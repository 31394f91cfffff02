/**
 * A Redis master with two replicas and three Sentinels, on this machine; if wanted, with TLS and the logins out of docs/security.md. It needs a redis-server
 * or valkey-server 7 or newer on PATH, and openssl for TLS.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../free-port.ts'
import { until } from '../../until.ts'
import { createCertificate } from '../certificate.ts'
import { nativeRedis } from './private-redis.ts'
import { admin, documentedLogin, documentedSentinelLogin, writeAclFile } from './redis-logins.ts'

export const masterName = 'main'
const replicas = 2
const quorum = 2
const sentinelCount = 3
const failoverTimeoutMs = 4_000
export const patience = { intervalMs: 100 }

type SentinelOptions = {
  folder: string
  /** After so long without a reply, a Sentinel takes a server for dead. */
  downAfterMs: number
  /** Every connection has TLS, and every program its login. Default false. */
  isSecure?: boolean
}

/** A server or a Sentinel. */
export type Node = { port: string; client: Redis; start(): void; signal(name: NodeJS.Signals): void; kill(): Promise<void> }

type RedisSentinels = {
  /** For each program, with its login. */
  urls: Record<'api' | 'worker', string>
  /** The prefix of keys that the logins have, and the authority that signed the certificate. */
  env: Record<string, string>
  servers: Node[]
  sentinels: Node[]
  /** As the Sentinel that replies first has it. */
  master(witnesses?: readonly Node[]): Promise<Node>
  /** Every server and Sentinel is there, all Sentinels name the same master, and its replicas are up to date. */
  untilWhole(): Promise<void>
  close(): Promise<void>
}

export async function startRedisSentinels({ folder, downAfterMs, isSecure = false }: SentinelOptions): Promise<RedisSentinels> {
  const ports = await Promise.all(Array.from({ length: 1 + replicas + sentinelCount }, freePort))
  const [first = ''] = ports
  const certificate = isSecure ? createCertificate(folder) : null
  const tls = certificate && { ca: certificate.cert }
  const { serverLogin, sentinelLogin } = isSecure ? { serverLogin: admin, sentinelLogin: { password: admin.password } } : {}
  const aclFile = isSecure ? writeAclFile(folder) : null
  const servers = ports.slice(0, 1 + replicas).map(port => startNode(port, serverSettings(port), [], serverLogin))
  const sentinels = ports.slice(1 + replicas).map(port => startNode(port, sentinelSettings(), ['--sentinel'], sentinelLogin))
  await untilWhole()
  for (const sentinel of sentinels) await hasten(sentinel)
  const env = certificate ? { REDIS_PREFIX: 'rivulet', NODE_EXTRA_CA_CERTS: certificate.path } : {}
  return { urls: { api: urlFor('api'), worker: urlFor('worker') }, env, servers, sentinels, master, untilWhole, close }

  function startNode(port: string, settings: readonly string[], args: readonly string[], login: { password?: string } = {}): Node {
    const dir = join(folder, port)
    mkdirSync(dir, { recursive: true })
    const file = join(dir, 'redis.conf')
    writeFileSync(file, [...listenSettings(port), 'bind 127.0.0.1', `dir ${dir}`, 'daemonize no', ...settings, ''].join('\n'), {
      mode: 0o600,
    })
    let process = run()
    const client = new Redis({
      ...{ host: '127.0.0.1', port: Number(port), connectionName: 'rivulet-engines', ...login },
      ...{ retryStrategy: () => 50, maxRetriesPerRequest: null, enableReadyCheck: false },
      ...(tls && { tls }),
    })
    client.on('error', () => {})
    return {
      port,
      client,
      start: () => {
        process = run()
      },
      signal: name => void process.kill(name),
      kill: () => end(process),
    }

    function run(): ChildProcess {
      return spawn(nativeRedis ?? '', [file, ...args], { stdio: 'ignore' })
    }
  }

  function listenSettings(port: string): string[] {
    if (!certificate) return [`port ${port}`]
    const { keyPath, path } = certificate
    const files = [`tls-key-file ${keyPath}`, `tls-cert-file ${path}`, `tls-ca-cert-file ${path}`]
    return ['port 0', `tls-port ${port}`, ...files, 'tls-auth-clients no', 'tls-replication yes']
  }

  function serverSettings(port: string): string[] {
    const settings = ['save ""', 'appendonly yes', 'repl-diskless-sync-delay 0', 'maxmemory-policy noeviction']
    if (port !== first) settings.push(`replicaof 127.0.0.1 ${first}`)
    if (!aclFile) return settings
    const { name, password } = documentedLogin('replica')
    return [...settings, `aclfile ${aclFile}`, `masteruser ${name}`, `masterauth ${password}`]
  }

  function sentinelSettings(): string[] {
    const settings = [
      `sentinel monitor ${masterName} 127.0.0.1 ${first} ${quorum}`,
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} ${failoverTimeoutMs}`,
      `sentinel parallel-syncs ${masterName} ${replicas}`,
    ]
    if (!isSecure) return settings
    const [ofServers, ofSentinels] = [documentedLogin('sentinel'), documentedSentinelLogin()]
    return [
      ...settings,
      ...[`sentinel auth-user ${masterName} ${ofServers.name}`, `sentinel auth-pass ${masterName} ${ofServers.password}`],
      ...[`requirepass ${admin.password}`, `sentinel sentinel-pass ${admin.password}`, `user ${ofSentinels.name} ${ofSentinels.rules}`],
    ]
  }

  function urlFor(program: 'api' | 'worker'): string {
    const path = `${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${masterName}`
    if (!isSecure) return `redis+sentinel://${path}`
    const [{ name, password }, ofSentinels] = [documentedLogin(program), documentedSentinelLogin()]
    return `rediss+sentinel://${name}:${password}@${path}?sentinelUsername=${ofSentinels.name}&sentinelPassword=${ofSentinels.password}`
  }

  async function master(witnesses: readonly Node[] = sentinels): Promise<Node> {
    const port = await Promise.any(witnesses.map(masterPortOf))
    return servers.find(server => server.port === port) as Node
  }

  async function untilWhole(): Promise<void> {
    await until('the servers and their Sentinels are whole', isWhole, patience)
  }

  async function isWhole(): Promise<boolean> {
    const named = new Set(await Promise.all(sentinels.map(masterPortOf)))
    const views = await Promise.all(sentinels.map(viewOf))
    const infos = await Promise.all(servers.map(({ client }) => client.info('replication')))
    const masters = infos.filter(info => info.includes('role:master'))
    const online = infos.filter(info => info.includes('role:slave') && info.includes('master_link_status:up'))
    return (
      named.size === 1 &&
      views.every(({ flags, others, slaves }) => flags === 'master' && others === sentinelCount - 1 && slaves.length === replicas) &&
      views.every(({ slaves }) => slaves.every(slave => slave === 'slave')) &&
      infos[servers.findIndex(({ port }) => named.has(port))]?.includes('role:master') === true &&
      masters.length === 1 &&
      online.length === replicas
    )
  }

  async function close(): Promise<void> {
    for (const { client } of [...servers, ...sentinels]) client.disconnect()
    await Promise.all([...servers, ...sentinels].map(({ kill }) => kill()))
  }
}

/** The flags of the master and of its replicas, as a Sentinel sees them, and how many other Sentinels it knows. */
async function viewOf({ client }: Node): Promise<{ flags: string; others: number; slaves: string[] }> {
  const view = fieldsOf(await client.call('SENTINEL', 'MASTER', masterName))
  const slaves = (await client.call('SENTINEL', 'REPLICAS', masterName)) as unknown[]
  return { flags: view.flags ?? '', others: Number(view['num-other-sentinels']), slaves: slaves.map(slave => fieldsOf(slave).flags ?? '') }
}

export async function masterPortOf({ client }: Node): Promise<string> {
  const [, port = ''] = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)) as string[]
  return port
}

/** Until it ends, a Sentinel learns within a second which replica shall be promoted next, and acts again 3 s after it was frozen, not 30 s. */
export async function hasten({ client }: Node): Promise<void> {
  await client.call('SENTINEL', 'DEBUG', 'INFO-PERIOD', '1000', 'TILT-PERIOD', '3000')
}

/** Of a reply that has names and values in turn. */
export function fieldsOf(reply: unknown): Record<string, string> {
  const flat = reply as string[]
  return Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']))
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const exited = once(process, 'exit')
  process.kill('SIGKILL')
  await exited
}
