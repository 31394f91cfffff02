/**
 * A Redis Cluster of three masters with a replica each, on this machine, whose servers can be killed, frozen, parted, promoted and given other slots.
 * Replication is asynchronous, as in production: a failover may lose the last writes. Every connection has TLS, those between servers included, and
 * every program its login out of docs/security.md. It needs a redis-server or valkey-server 7 or newer, and openssl, on PATH.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { freePort } from '../../free-port.ts'
import { until } from '../../until.ts'
import { createCertificate } from '../certificate.ts'
import { type BusProxy, startBusProxy } from './bus-proxy.ts'
import { nativeRedis } from './private-redis.ts'
import { admin, documentedLogin, refusalsIn, writeAclFile } from './redis-logins.ts'

const masters = 3
const size = 2 * masters
const slotCount = 16_384
/** After so long without a reply, the others promote a replica. */
const nodeTimeoutMs = 1_500
const patience = { intervalMs: 100 }

type Node = { port: string; busPort: string; dir: string; bus: BusProxy; client: Redis; id: string; process: ChildProcess }

/** What one server of the cluster knows of another. */
type Seen = { id: string; isDown: boolean; slots: [number, number][] }

export type FaultyCluster = {
  /** For each program, with its login. */
  urls: Record<'api' | 'worker', string>
  /** The prefix of keys that the logins have, and the authority that signed the certificates of the servers. */
  env: { REDIS_PREFIX: string; NODE_EXTRA_CA_CERTS: string }
  client(): Promise<Redis>
  /** Kills the nth master as if the power was lost, waits for its replica to take over, and starts it again. */
  killMaster(nth: number): Promise<void>
  /** The replica of the nth master takes over, by agreement. */
  promote(nth: number): Promise<void>
  /** Freezes the nth master for so long. */
  freezeMaster(nth: number, ms: number): Promise<void>
  /** The nth master hears none of the others, nor they of it, until its replica has taken over. Clients reach both sides. */
  part(nth: number): Promise<void>
  /** Moves so many slots that have keys from the nth master to the next one, key by key. */
  reshard(nth: number, slots: number): Promise<void>
  /** What the servers refused to a login since they were started. */
  refusals(): Promise<string[]>
  close(): Promise<void>
}

export async function startFaultyCluster(): Promise<FaultyCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-cluster-'))
  const certificate = createCertificate(folder)
  const aclFile = writeAclFile(folder)
  const secure = { ...admin, tls: { ca: certificate.cert } }
  const nodes = await Promise.all(Array.from({ length: size }, startNode))
  const [first] = nodes as [Node]
  await Promise.all(nodes.map(meet))
  await until('all servers know each other', async () => (await seenBy(first)).length === size, patience)
  await Promise.all(nodes.slice(masters).map((node, i) => follow(node, nodes[i] as Node)))
  await untilWhole()
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`)
  const options = { clusterRetryStrategy: () => 100, redisOptions: { maxRetriesPerRequest: null, ...secure } }
  const client = new Cluster(addresses, options)
  client.on('error', () => {})
  return {
    ...{
      urls: { api: urlFor('api'), worker: urlFor('worker') },
      env: { REDIS_PREFIX: 'rivulet', NODE_EXTRA_CA_CERTS: certificate.path },
      client: async () => client as unknown as Redis,
    },
    ...{ killMaster, promote, freezeMaster, part, reshard, refusals, close },
  }

  function urlFor(program: 'api' | 'worker'): string {
    const { name, password } = documentedLogin(program)
    return `rediss://${name}:${password}@${addresses.join(',')}`
  }

  async function startNode(_: unknown, i: number): Promise<Node> {
    const [port, busPort] = [await freePort(), await freePort()]
    const bus = await startBusProxy(busPort, certificate)
    const dir = join(folder, port)
    mkdirSync(dir)
    const process = startServer({ port, busPort, dir, bus })
    const client = new Redis({ port: Number(port), retryStrategy: () => 50, maxRetriesPerRequest: null, ...secure })
    client.on('error', () => {})
    const id = String(await client.call('CLUSTER', 'MYID'))
    if (i < masters) {
      const from = Math.floor((slotCount * i) / masters)
      await client.call('CLUSTER', 'ADDSLOTSRANGE', from, Math.floor((slotCount * (i + 1)) / masters) - 1)
    }
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
    return { port, busPort, dir, bus, client, id, process }
  }

  /** Its data and what it knows of the others are in its folder. */
  function startServer({ port, busPort, dir, bus }: Pick<Node, 'port' | 'busPort' | 'dir' | 'bus'>): ChildProcess {
    const { name, password } = documentedLogin('replica')
    const options = {
      ...{ port: '0', dir, bind: '127.0.0.1', save: '', appendonly: 'yes' },
      ...{ 'tls-port': port, 'tls-cluster': 'yes', 'tls-replication': 'yes', 'tls-auth-clients': 'no' },
      ...{ 'tls-cert-file': certificate.path, 'tls-key-file': certificate.keyPath, 'tls-ca-cert-file': certificate.path },
      ...{ aclfile: aclFile, masteruser: name, masterauth: password },
      ...{ 'cluster-enabled': 'yes', 'cluster-port': busPort, 'cluster-announce-bus-port': bus.port },
      ...{ 'cluster-node-timeout': String(nodeTimeoutMs), 'cluster-replica-validity-factor': '0', 'repl-diskless-sync-delay': '0' },
    }
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
    return spawn(nativeRedis ?? '', args, { stdio: 'ignore' })
  }

  async function meet(node: Node): Promise<void> {
    await node.client.call('CLUSTER', 'MEET', '127.0.0.1', first.port, first.bus.port)
  }

  async function follow(node: Node, master: Node): Promise<void> {
    await until('it knows its master', async () => (await seenBy(node)).some(({ id }) => id === master.id), patience)
    await node.client.call('CLUSTER', 'REPLICATE', master.id)
  }

  async function killMaster(nth: number): Promise<void> {
    const node = await masterAt(nth)
    const exited = once(node.process, 'exit')
    node.process.kill('SIGKILL')
    await exited
    await untilReplaced(node)
    node.process = startServer(node)
    await untilWhole()
  }

  async function promote(nth: number): Promise<void> {
    const node = await masterAt(nth)
    const replica = await replicaOf(node)
    let asked = Number.NEGATIVE_INFINITY
    const isPromoted = async () => {
      // Redis gives up after 5 s if it is too busy to agree.
      if (performance.now() - asked > 6_000) {
        asked = performance.now()
        await replica.client.call('CLUSTER', 'FAILOVER').catch(() => {})
      }
      return isReplaced(node, replica)
    }
    await until('the replica has taken over', isPromoted, patience)
    await untilWhole()
  }

  async function freezeMaster(nth: number, ms: number): Promise<void> {
    const node = await masterAt(nth)
    node.process.kill('SIGSTOP')
    await new Promise(resolve => setTimeout(resolve, ms))
    node.process.kill('SIGCONT')
    await untilWhole()
  }

  async function part(nth: number): Promise<void> {
    const node = await masterAt(nth)
    const others = nodes.filter(one => one !== node)
    node.bus.admit(new Set([node.id]))
    for (const other of others) other.bus.admit(new Set(others.map(({ id }) => id)))
    await untilReplaced(node, others[0])
    for (const each of nodes) each.bus.admit(null)
    await untilWhole()
  }

  async function reshard(nth: number, slots: number): Promise<void> {
    const [from, to] = [await masterAt(nth), await masterAt(nth + 1)]
    const own = (await seenBy(from)).find(({ id }) => id === from.id)?.slots ?? []
    let left = slots
    for (const [low, high] of own)
      for (let slot = low; slot <= high && left > 0; slot += 1)
        if (Number(await from.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)) > 0) {
          left -= 1
          await move(slot, from, to)
        }
    await untilWhole()
  }

  async function move(slot: number, from: Node, to: Node): Promise<void> {
    await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id)
    await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id)
    for (;;) {
      const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 20)) as string[]
      if (keys.length === 0) break
      await from.client.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'AUTH2', admin.username, admin.password, 'KEYS', ...keys)
    }
    for (const node of [to, from]) await node.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id)
  }

  /** In the order of their slots. */
  async function masterAt(nth: number): Promise<Node> {
    const seen = (await seenBy(nodes.find(({ process }) => process.exitCode === null) ?? first)).filter(one => one.slots.length > 0)
    seen.sort(({ slots: [a] }, { slots: [b] }) => (a?.[0] ?? 0) - (b?.[0] ?? 0))
    const wanted = seen[nth % seen.length]
    return nodes.find(({ id }) => id === wanted?.id) ?? first
  }

  /** Gossip about a server that became a replica may be late. */
  async function replicaOf(master: Node): Promise<Node> {
    return until(
      'the master knows its replica',
      async () => {
        const rows = (await master.client.call('CLUSTER', 'REPLICAS', master.id)) as string[]
        return nodes.find(({ id }) => rows.some(row => row.startsWith(id)))
      },
      patience,
    )
  }

  /** Another server has its slots, as one of the others sees it. */
  async function untilReplaced(node: Node, witness = nodes.find(one => one !== node) as Node): Promise<void> {
    await until('a replica has taken over', () => isReplaced(node, witness), patience)
  }

  async function isReplaced(node: Node, witness: Node): Promise<boolean> {
    return (await seenBy(witness)).every(({ id, slots }) => id !== node.id || slots.length === 0)
  }

  /** Every server is there, every master has a replica that is up to date, and all agree which server has which slots. */
  async function untilWhole(): Promise<void> {
    await until('the cluster is whole', isWhole, patience)
  }

  async function isWhole(): Promise<boolean> {
    const views = new Set<string>()
    for (const node of nodes) {
      const info = String(await node.client.call('CLUSTER', 'INFO'))
      const seen = await seenBy(node)
      const owners = seen.filter(one => one.slots.length > 0).sort((a, b) => (a.id < b.id ? -1 : 1))
      views.add(JSON.stringify(owners))
      const isRight = seen.length === size && seen.every(({ isDown }) => !isDown) && owners.length === masters
      if (!info.includes('cluster_state:ok') || !isRight) return false
      const replication = await node.client.info('replication')
      if (replication.includes('role:slave') ? !replication.includes('master_link_status:up') : !replication.includes('connected_slaves:1'))
        return false
    }
    return views.size === 1
  }

  async function refusals(): Promise<string[]> {
    return (await Promise.all(nodes.map(({ client }) => client.call('ACL', 'LOG', '128')))).flatMap(refusalsIn)
  }

  async function close(): Promise<void> {
    client.disconnect()
    for (const node of nodes) {
      node.client.disconnect()
      node.bus.close()
    }
    await Promise.all(
      nodes.map(async ({ process }) => {
        if (process.exitCode !== null || process.signalCode !== null) return
        const exited = once(process, 'exit')
        process.kill('SIGKILL')
        await exited
      }),
    )
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The servers that one of them knows, itself included: id, address, flags, and from the ninth field on its slots. */
async function seenBy(node: Node): Promise<Seen[]> {
  const lines = String(await node.client.call('CLUSTER', 'NODES'))
    .trim()
    .split('\n')
  return lines.map(line => {
    const [id = '', , flags = '', , , , , link = '', ...ranges] = line.trim().split(' ')
    const slots = ranges.flatMap((range): [number, number][] => {
      const [, low, high = low] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? []
      return low === undefined ? [] : [[Number(low), Number(high)]]
    })
    const isDown = /fail|handshake|noaddr/.test(flags) || (link !== 'connected' && !flags.includes('myself'))
    return { id, isDown, slots }
  })
}
