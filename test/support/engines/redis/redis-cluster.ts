/**
 * A Redis Cluster of three servers on this machine, for runs of the tests with RIVULET_TEST_REDIS=cluster. Only a redis-server or valkey-server
 * from PATH can be one.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '@rivulet/engines'
import { Redis } from 'ioredis'
import { freePort } from '../../free-port.ts'

const size = 3
const slots = 16_384
/** How long three servers may take to agree. */
const patienceMs = 300_000

type RedisCluster = Engine & {
  /** Of each server. */
  urls: string[]
}

export async function startRedisCluster(folder: string): Promise<RedisCluster> {
  const program = ['redis-server', 'valkey-server'].find(canRun)
  if (!program) throw new Error('RIVULET_TEST_REDIS=cluster needs a redis-server or valkey-server on PATH')
  const [ports, busPorts] = await Promise.all([freePorts(), freePorts()])
  const servers = ports.map((port, i) => startServer(program, join(folder, `redis-${port}`), port, busPorts[i] ?? ''))
  const urls = ports.map(port => `redis://127.0.0.1:${port}`)
  const clients = urls.map(url => new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: patienceMs / 50 }))
  for (const client of clients) client.on('error', () => {})
  try {
    for (const [i, client] of clients.entries()) {
      await client.call('CLUSTER', 'ADDSLOTSRANGE', Math.floor((slots * i) / size), Math.floor((slots * (i + 1)) / size) - 1)
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      await client.call('CLUSTER', 'MEET', '127.0.0.1', ports[0] ?? '', busPorts[0] ?? '')
    }
    await untilAgreed(clients)
  } finally {
    for (const client of clients) client.disconnect()
  }
  const url = `${urls[0]},${ports.slice(1).map(port => `127.0.0.1:${port}`)}`
  const description = `a cluster of ${size}, ${program} at ports ${ports.join(', ')}`
  return { url, urls, kind: 'native', description, pid: null, lost: new Promise(() => {}), stop }

  async function stop(): Promise<void> {
    await Promise.all(
      servers.map(async server => {
        const exited = once(server, 'exit')
        server.kill('SIGTERM')
        await exited
      }),
    )
  }
}

function freePorts(): Promise<string[]> {
  return Promise.all(Array.from({ length: size }, freePort))
}

function startServer(program: string, dir: string, port: string, busPort: string): ChildProcess {
  mkdirSync(dir, { recursive: true })
  const options = {
    port,
    dir,
    bind: '127.0.0.1',
    save: '',
    'cluster-enabled': 'yes',
    'cluster-port': busPort,
    'cluster-node-timeout': '15000',
  }
  return spawn(
    program,
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
    { stdio: 'ignore' },
  )
}

async function untilAgreed(clients: readonly Redis[]): Promise<void> {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const infos = await Promise.all(clients.map(async client => String(await client.call('CLUSTER', 'INFO'))))
    if (infos.every(info => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${size}`))) return
    if (Date.now() > deadline) throw new Error(`The servers of the cluster do not agree:\n${infos.join('\n')}`)
    await sleep(50)
  }
}

function canRun(program: string): boolean {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8' }).length > 0
  } catch {
    return false
  }
}
