/**
 * Fails a test file that leaves a connection to the run's servers open. It is imported before anything that connects.
 *
 * The servers cannot tell whose a connection is, and forget it when the worker ends; so the sockets of this process are counted here.
 */
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { inject, vi } from 'vitest'
import { portsOf } from './redis/test-redis.ts'

const sockets = new Set<Socket>()

subscribe('net.client.socket', message => {
  const { socket } = message as { socket: Socket }
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
})

export async function expectNoConnections(): Promise<void> {
  const servers = new Map([
    ...portsOf(inject('redisUrl')).map(port => [port, 'Redis'] as const),
    [Number(new URL(inject('postgresUrl')).port), 'Postgres'],
  ])
  await vi.waitFor(
    () => {
      const open = [...sockets].flatMap(({ remotePort }) => servers.get(remotePort ?? 0) ?? [])
      if (open.length > 0) throw new Error(`This file leaves connections open: ${open.join(', ')}`)
    },
    { timeout: 300_000, interval: 20 },
  )
}
