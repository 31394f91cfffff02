/**
 * A TCP proxy that disturbs its client: the server's bytes arrive in pieces that begin and end anywhere, held back for a while,
 * and the connection may break after any byte.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../agents/scripts.ts'

type ChoppingProxy = { url: string; close(): Promise<void> }

export type Chopping = {
  seed: number
  /** The longest piece, in bytes. */
  pieceBytes: number
  /** What the server says is held back until there is this much of it, or nothing more comes for a moment. Default 0. */
  heldBytes?: number
  /** After how many bytes a connection breaks. Default: never. */
  breakAfter?: (random: () => number) => number
  /** What becomes of what a client says at once. Default: it is passed on as it is. */
  garble?: (said: Buffer, random: () => number) => Garbled
}

/** With `isRepeated` the server gets the request a second time, on a separate connection whose response is dropped. */
export type Garbled = { said: Buffer; isRepeated?: boolean }

export async function startChoppingProxy(target: string, chopping: Chopping): Promise<ChoppingProxy> {
  const { seed, pieceBytes, heldBytes = 0, breakAfter = () => Number.POSITIVE_INFINITY, garble = (said): Garbled => ({ said }) } = chopping
  const random = seededRandom(seed)
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) keep(socket)
    client.once('close', () => upstream.destroy())
    client.on('data', chunk => {
      const { said, isRepeated = false } = garble(chunk, random)
      upstream.write(said)
      if (isRepeated) repeat(said)
    })
    void forward(upstream, client, breakAfter(random))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }

  function keep(socket: Socket): void {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  }

  function repeat(said: Buffer): void {
    const again = connect(Number(port), hostname)
    keep(again)
    again.once('data', () => again.destroy())
    again.write(said)
  }

  async function forward(upstream: Socket, client: Socket, limit: number): Promise<void> {
    let held = Buffer.alloc(0)
    let left = limit
    let isOver = false
    upstream.on('data', chunk => {
      held = Buffer.concat([held, chunk])
    })
    upstream.once('close', () => {
      isOver = true
    })
    while (!client.destroyed) {
      const length = held.length
      await sleep(5)
      // Held back while more comes and it is not much.
      if (held.length === 0 ? !isOver : held.length > length && held.length < heldBytes) continue
      if (held.length === 0) return void client.end()
      while (held.length > 0 && left > 0) {
        const piece = held.subarray(0, Math.min(1 + Math.floor(random() * pieceBytes), left))
        held = held.subarray(piece.length)
        left -= piece.length
        client.write(piece)
        // Each piece by itself, or the kernel would join them again.
        await new Promise(resolve => setImmediate(resolve))
      }
      if (left <= 0) return void client.destroy()
    }
  }

  async function close(): Promise<void> {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }
}
