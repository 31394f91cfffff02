/**
 * A Redis master with two replicas and three Sentinels, whose servers and Sentinels can be killed, frozen and promoted, and that can lose its last writes.
 * Replication is asynchronous, as in production. A server that comes back takes itself for a master, until a Sentinel has watched that for 8 s. Every
 * connection has TLS, and every program its login out of docs/security.md.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { until } from '../../until.ts'
import { documentedLogin, refusalsIn } from './redis-logins.ts'
import { fieldsOf, hasten, masterName, masterPortOf, type Node, patience, startRedisSentinels } from './redis-sentinels.ts'

export type FaultySentinels = {
  urls: Record<'api' | 'worker', string>
  env: Record<string, string>
  /** Of the master. */
  client(): Promise<Redis>
  /** Kills the master as if the power was lost, waits for a replica to take over, and starts it again. */
  killMaster(): Promise<void>
  /** The same, after it has accepted writes for so long that no replica has. */
  killMasterAlone(ms: number): Promise<void>
  /** Freezes the master for so long. */
  freezeMaster(ms: number): Promise<void>
  /** Freezes the master until a replica has taken over; clients reach it again while it takes itself for the master. */
  replaceFrozenMaster(): Promise<void>
  /** A replica takes over, by order of a Sentinel; and the old master again. */
  promoteThereAndBack(): Promise<void>
  /** Kills the master while the nth Sentinel is dead. */
  killMasterWithout(nth: number): Promise<void>
  /** Freezes the master and the nth Sentinel until a replica has taken over; both wake at once. */
  freezeMasterAnd(nth: number): Promise<void>
  /**
   * Freezes the master, and the nth Sentinel is dead, until a replica has taken over. Then both are back, only that Sentinel replies, and it names the old
   * master; all connections are closed, and have to find the new master. (One that was frozen would learn of it at once, by what is left in its sockets.)
   */
  misleadBy(nth: number): Promise<void>
  /** What the servers and the Sentinels refused to a login since they were started. */
  refusals(): Promise<string[]>
  close(): Promise<void>
}

export async function startFaultySentinels(): Promise<FaultySentinels> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-sentinels-'))
  const redis = await startRedisSentinels({ folder, downAfterMs: 1_500, isSecure: true })
  const { urls, env, servers, sentinels, master, untilWhole } = redis
  return {
    ...{ urls, env, client: async () => (await master()).client, refusals },
    ...{ killMaster, killMasterAlone, freezeMaster, replaceFrozenMaster, promoteThereAndBack },
    ...{ killMasterWithout, freezeMasterAnd, misleadBy, close },
  }

  async function killMaster(): Promise<void> {
    const old = await master()
    await old.kill()
    await untilReplaced(old)
    old.start()
    await untilWhole()
  }

  async function killMasterAlone(ms: number): Promise<void> {
    const old = await master()
    await old.client.call('ACL', 'SETUSER', documentedLogin('replica').name, '-psync')
    await old.client.call('CLIENT', 'KILL', 'TYPE', 'replica')
    await sleep(ms)
    await killMaster()
  }

  async function freezeMaster(ms: number): Promise<void> {
    const old = await master()
    old.signal('SIGSTOP')
    await sleep(ms)
    old.signal('SIGCONT')
    await untilWhole()
  }

  async function replaceFrozenMaster(): Promise<void> {
    const old = await master()
    old.signal('SIGSTOP')
    await untilReplaced(old)
    old.signal('SIGCONT')
    await untilWhole()
  }

  async function promoteThereAndBack(): Promise<void> {
    const old = await master()
    const next = servers.find(server => server !== old) as Node
    for (const server of [next, old]) await promote(server)
  }

  async function promote(wanted: Node): Promise<void> {
    for (const server of servers) await server.client.config('SET', 'replica-priority', server === wanted ? 1 : 100)
    const [sentinel] = sentinels as [Node]
    await until('the Sentinel knows which replica is wanted', () => prefers(sentinel, wanted), patience)
    await until('it is the master', () => order(sentinel, wanted), patience)
    await untilWhole()
  }

  /** Ordered again if the Sentinel gave up, because a server was slow. */
  async function order(sentinel: Node, wanted: Node): Promise<boolean> {
    if ((await masterPortOf(sentinel)) === wanted.port) return true
    await sentinel.client.call('SENTINEL', 'FAILOVER', masterName).catch(() => {})
    return false
  }

  async function killMasterWithout(nth: number): Promise<void> {
    const sentinel = sentinels[nth] as Node
    await sentinel.kill()
    const old = await master(others(sentinel))
    await old.kill()
    await untilReplaced(old, others(sentinel))
    for (const node of [old, sentinel]) node.start()
    await hasten(sentinel)
    await untilWhole()
  }

  async function freezeMasterAnd(nth: number): Promise<void> {
    const frozen = [sentinels[nth] as Node, await master()] as const
    for (const node of frozen) node.signal('SIGSTOP')
    await untilReplaced(frozen[1], others(frozen[0]))
    for (const node of frozen) node.signal('SIGCONT')
    await untilWhole()
  }

  async function misleadBy(nth: number): Promise<void> {
    const sentinel = sentinels[nth] as Node
    const old = await master()
    const count = await countClients(old)
    await sentinel.kill()
    old.signal('SIGSTOP')
    await untilReplaced(old, others(sentinel))
    const next = await master(others(sentinel))
    await untilUsed(next, count)
    for (const other of others(sentinel)) other.signal('SIGSTOP')
    old.signal('SIGCONT')
    sentinel.start()
    // It would make the new master a replica of the old one after four of these periods.
    await sentinel.client.call('SENTINEL', 'DEBUG', 'PUBLISH-PERIOD', '60000')
    for (const type of ['pubsub', 'normal']) await next.client.call('CLIENT', 'KILL', 'TYPE', type)
    await untilUsed(next, count)
    if ((await masterPortOf(sentinel)) !== old.port) throw new Error('The Sentinel knows the new master, and misled no process')
    await sentinel.client.call('SENTINEL', 'DEBUG', 'PUBLISH-PERIOD', '2000')
    await hasten(sentinel)
    for (const other of others(sentinel)) other.signal('SIGCONT')
    await untilWhole()
  }

  function others(sentinel: Node): Node[] {
    return sentinels.filter(one => one !== sentinel)
  }

  /** All of these Sentinels name another one. */
  async function untilReplaced(old: Node, witnesses: readonly Node[] = sentinels): Promise<void> {
    const isReplaced = async () => (await Promise.all(witnesses.map(masterPortOf))).every(port => port !== old.port)
    await until('a replica has taken over', isReplaced, patience)
  }

  async function prefers({ client: sentinel }: Node, wanted: Node): Promise<boolean> {
    const replicas = ((await sentinel.call('SENTINEL', 'REPLICAS', masterName)) as unknown[]).map(fieldsOf)
    return replicas.every(({ port, 'slave-priority': priority }) => (port === wanted.port) === (priority === '1'))
  }

  async function untilUsed(server: Node, clients: number): Promise<void> {
    await until('all clients are connected to the new master', async () => (await countClients(server)) >= clients, patience)
  }

  /** Sentinels and replicas are clients too. */
  async function countClients({ client: server }: Node): Promise<number> {
    const lines = String(await server.call('CLIENT', 'LIST')).split('\n')
    return lines.filter(line => / flags=[NPb]/.test(line) && !/ name=(sentinel-|rivulet-engines)/.test(line)).length
  }

  async function refusals(): Promise<string[]> {
    return (await Promise.all([...servers, ...sentinels].map(node => node.client.call('ACL', 'LOG', '128')))).flatMap(refusalsIn)
  }

  async function close(): Promise<void> {
    await redis.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
