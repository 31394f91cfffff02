/**
 * The Sentinels of a Redis master, shared by all connections of this process that have the same URL.
 *
 * Each failover raises the configuration epoch. This process never connects to a master of a lower epoch than the highest that a Sentinel has reported to
 * it: a Sentinel that has not heard of a failover yet, or was frozen meanwhile, reports the old master, which may still accept writes that will be lost.
 * While a connection is open, all Sentinels are asked every second, and connections to a replaced master are closed: one that only receives pushes sends
 * nothing that would show it. Without an open connection, no timer and no connection to a Sentinel is left.
 */
import type { Socket } from 'node:net'
import type { RedisAddress, RedisUrl } from '@rivulet/runtime/redis-url'
import { Redis } from 'ioredis'

export type SentinelUrl = Extract<RedisUrl, { kind: 'sentinel' }>

export type Master = RedisAddress & { epoch: number }

export type Sentinels = {
  /** Opens a connection to the master of the highest epoch; it is destroyed when a higher epoch becomes known. Rejects if no Sentinel knows a master. */
  connect<S extends Socket>(open: (master: Master) => S): Promise<S>
}

const askEveryMs = 1_000

/** A frozen Sentinel accepts connections and never replies. */
const patience = { commandTimeout: 1_000, connectTimeout: 1_000, socketTimeout: 2_000 }

const shared = new Map<string, Sentinels>()

export function sentinelsOf(url: SentinelUrl): Sentinels {
  const key = JSON.stringify(url)
  const sentinels = shared.get(key) ?? createSentinels(url)
  shared.set(key, sentinels)
  return sentinels
}

function createSentinels({ addresses, masterName, sentinelLogin, isTls }: SentinelUrl): Sentinels {
  const epochs = new Map<Socket, number>()
  let highest: Master | null = null
  let connecting = 0
  let clients: Redis[] = []
  let asking: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null
  return { connect }

  async function connect<S extends Socket>(open: (master: Master) => S): Promise<S> {
    connecting += 1
    try {
      await ask()
      if (!highest) throw new Error(`No Sentinel knows the master ${masterName}`)
      const socket = open(highest)
      epochs.set(socket, highest.epoch)
      socket.once('close', () => {
        epochs.delete(socket)
        endIfUnused()
      })
      // If no Sentinel replies, the connections stay as they are.
      timer ??= setInterval(() => ask().catch(() => {}), askEveryMs)
      return socket
    } finally {
      connecting -= 1
      endIfUnused()
    }
  }

  function endIfUnused(): void {
    if (connecting > 0 || epochs.size > 0) return
    if (timer) clearInterval(timer)
    for (const client of clients) client.disconnect()
    timer = null
    clients = []
    asking = null
  }

  /** Connections that are opened at the same time share one question. */
  function ask(): Promise<void> {
    if (asking) return asking
    const current = askAll().finally(() => {
      if (asking === current) asking = null
    })
    asking = current
    return current
  }

  /** Resolves when each Sentinel has replied or failed; rejects if all failed. A new epoch counts at once. */
  async function askAll(): Promise<void> {
    if (clients.length === 0) clients = addresses.map(openClient)
    const replies = await Promise.allSettled(clients.map(client => readMaster(client, masterName).then(note)))
    const failures = replies.flatMap(reply => (reply.status === 'rejected' ? [reply.reason as Error] : []))
    if (failures.length === replies.length)
      throw new Error(`No Sentinel knows the master ${masterName}: ${failures.map(({ message }) => message).join('; ')}`)
  }

  function note(master: Master): void {
    if (highest && master.epoch <= highest.epoch) return
    highest = master
    for (const [socket, epoch] of epochs) if (epoch < master.epoch) socket.destroy()
  }

  function openClient({ host, port }: RedisAddress): Redis {
    const client = new Redis({
      ...{ host, port, ...sentinelLogin, ...patience, ...(isTls && { tls: {} }) },
      // The next question connects again.
      ...{ lazyConnect: true, retryStrategy: null, enableReadyCheck: false, disableClientInfo: true },
    })
    return client.on('error', () => {})
  }
}

/** Rejects with an error that names the Sentinel. */
async function readMaster(client: Redis, masterName: string): Promise<Master> {
  let broken: Error | null = null
  const noteError = (error: Error) => {
    broken = error
  }
  client.on('error', noteError)
  try {
    if (client.status === 'wait' || client.status === 'end') client.connect().catch(() => {})
    const [before, address, after] = await Promise.all([
      readEpoch(),
      client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName),
      readEpoch(),
    ])
    // `SENTINEL MASTER` names the old master until the last replica follows the new one, so only the epoch is taken from it.
    const [host, port] = (address ?? []) as string[]
    if (!host || before !== after) throw new Error('its master is being replaced')
    return { host, port: Number(port), epoch: before }
  } catch (error) {
    const { host, port } = client.options
    throw new Error(`${host}:${port}: ${reasonOf(broken ?? error)}`)
  } finally {
    client.off('error', noteError)
  }

  async function readEpoch(): Promise<number> {
    const reply = (await client.call('SENTINEL', 'MASTER', masterName)) as string[]
    return Number(reply[reply.indexOf('config-epoch') + 1])
  }
}

/** The error of a refused connection has no message of its own if the host has several addresses. */
function reasonOf(error: unknown): string {
  return error instanceof AggregateError ? error.errors.map(String).join(', ') : error instanceof Error ? error.message : String(error)
}
