/**
 * A Redis master with two replicas and three Sentinels, on this machine; if wanted, with a login and TLS, and then Sentinels have a login of their own.
 * It needs a redis-server or valkey-server 7 or newer on PATH.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../free-port.ts'
import { until } from '../../until.ts'
import type { Certificate } from '../certificate.ts'
import { nativeRedis } from './private-redis.ts'

export const masterName = 'main'
const replicas = 2
const quorum = 2
const sentinelCount = 3
const failoverTimeoutMs = 4_000
export const patience = { timeoutMs: 90_000, intervalMs: 100 }

export type SentinelOptions = {
  folder: string
  /** After so long without a reply, a Sentinel takes a server for dead. */
  downAfterMs: number
  /** Default none. The URL has it. `sentinelRules`: what its user may do, in the words of an ACL. */
  login?: { username: string; password: string; sentinelUsername: string; sentinelPassword: string; sentinelRules: string }
  /** Default no TLS. */
  certificate?: Certificate
}

/** A server or a Sentinel. */
export type Node = { port: string; client: Redis; start(): void; signal(name: NodeJS.Signals): void; kill(): Promise<void> }

export type RedisSentinels = {
  url: string
  servers: Node[]
  sentinels: Node[]
  /** As the Sentinel that replies first has it. */
  master(witnesses?: readonly Node[]): Promise<Node>
  /** Every server and Sentinel is there, all Sentinels name the same master, and its replicas are up to date. */
  untilWhole(): Promise<void>
  close(): Promise<void>
}

export async function startRedisSentinels({ folder, downAfterMs, login, certificate }: SentinelOptions): Promise<RedisSentinels> {
  const ports = await Promise.all(Array.from({ length: 1 + replicas + sentinelCount }, freePort))
  const [first = ''] = ports
  const tls = certificate && tlsSettings(certificate)
  const servers = ports.slice(0, 1 + replicas).map(port => startNode(port, serverSettings(port), [], serverAccess()))
  const sentinels = ports.slice(1 + replicas).map(port => startNode(port, sentinelSettings(), ['--sentinel'], sentinelAccess()))
  await untilWhole()
  for (const sentinel of sentinels) await hasten(sentinel)
  return { url: urlOf(), servers, sentinels, master, untilWhole, close }

  function startNode(port: string, settings: readonly string[], args: readonly string[], access: { password?: string }): Node {
    const dir = join(folder, port)
    mkdirSync(dir, { recursive: true })
    const file = join(dir, 'redis.conf')
    const listen = tls ? ['port 0', `tls-port ${port}`, ...tls] : [`port ${port}`]
    writeFileSync(file, [...listen, 'bind 127.0.0.1', `dir ${dir}`, 'daemonize no', ...settings, ''].join('\n'), { mode: 0o600 })
    let process = run()
    const client = new Redis({
      ...{ host: '127.0.0.1', port: Number(port), connectionName: 'rivulet-engines', ...access },
      ...{ retryStrategy: () => 50, maxRetriesPerRequest: null, enableReadyCheck: false },
      ...(certificate && { tls: { ca: certificate.cert } }),
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

  function serverSettings(port: string): string[] {
    return [
      ...['save ""', 'appendonly yes', 'repl-diskless-sync-delay 0', 'maxmemory-policy noeviction'],
      ...(port === first ? [] : [`replicaof 127.0.0.1 ${first}`]),
      ...(login
        ? [`requirepass ${login.password}`, `masterauth ${login.password}`, userLine(login.username, login.password, '~* &* +@all')]
        : []),
    ]
  }

  function sentinelSettings(): string[] {
    return [
      `sentinel monitor ${masterName} 127.0.0.1 ${first} ${quorum}`,
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} ${failoverTimeoutMs}`,
      `sentinel parallel-syncs ${masterName} ${replicas}`,
      ...(login ? [`sentinel auth-pass ${masterName} ${login.password}`, `requirepass ${login.sentinelPassword}`] : []),
      ...(login
        ? [
            `sentinel sentinel-pass ${login.sentinelPassword}`,
            userLine(login.sentinelUsername, login.sentinelPassword, login.sentinelRules),
          ]
        : []),
    ]
  }

  function tlsSettings({ keyPath, path }: Certificate): string[] {
    return [`tls-key-file ${keyPath}`, `tls-cert-file ${path}`, `tls-ca-cert-file ${path}`, 'tls-auth-clients no', 'tls-replication yes']
  }

  function serverAccess(): { password?: string } {
    return login ? { password: login.password } : {}
  }

  function sentinelAccess(): { password?: string } {
    return login ? { password: login.sentinelPassword } : {}
  }

  function urlOf(): string {
    const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const [user, query] = login
      ? [`${login.username}:${login.password}@`, `?sentinelUsername=${login.sentinelUsername}&sentinelPassword=${login.sentinelPassword}`]
      : ['', '']
    return `redis${tls ? 's' : ''}+sentinel://${user}${addresses}/${masterName}${query}`
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

function userLine(name: string, password: string, rules: string): string {
  return `user ${name} on >${password} ${rules}`
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const exited = once(process, 'exit')
  process.kill('SIGKILL')
  await exited
}
