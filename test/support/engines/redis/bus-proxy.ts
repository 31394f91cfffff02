/**
 * The way to the cluster bus of one Redis. It lets no packet of some senders through, so that servers which share a machine can be parted.
 * The bus is encrypted, so the proxy decrypts what it receives and encrypts it again.
 *
 * A packet of the bus begins with a header of fixed length that names its sender. All packets of a connection have the same one, so the first decides.
 */
import type { Socket } from 'node:net'
import { connect, createServer } from 'node:tls'
import { freePort } from '../../free-port.ts'
import type { Certificate } from '../certificate.ts'

/** Where the header has the sender's id, 40 characters. */
const senderAt = 40
const senderLength = 40

export type BusProxy = {
  port: string
  /** Only packets of these ids pass; null: all. Connections of others are closed. */
  admit(ids: ReadonlySet<string> | null): void
  close(): void
}

/** The servers of a cluster share a certificate, and show it to each other. */
export async function startBusProxy(target: string, { key, cert }: Certificate): Promise<BusProxy> {
  const port = await freePort()
  const open = new Map<Socket, string | null>()
  let admitted: ReadonlySet<string> | null = null
  const identity = { key, cert, ca: cert }
  const server = createServer({ ...identity, requestCert: true }, accept).listen(Number(port), '127.0.0.1')
  // A server that is killed may be in the middle of a handshake.
  server.on('tlsClientError', () => {})
  await new Promise<void>(resolve => server.once('listening', resolve))
  return { port, admit, close }

  function accept(from: Socket): void {
    const to = connect({ ...identity, port: Number(target), host: '127.0.0.1' })
    let head = Buffer.alloc(0)
    open.set(from, null)
    for (const socket of [from, to])
      socket
        .on('error', () => {})
        .on('close', () => {
          open.delete(from)
          from.destroy()
          to.destroy()
        })
    to.pipe(from)
    from.on('data', function read(chunk: Buffer) {
      head = Buffer.concat([head, chunk])
      if (head.length < senderAt + senderLength) return
      const sender = head.toString('latin1', senderAt, senderAt + senderLength)
      open.set(from, sender)
      if (!passes(sender)) return from.destroy()
      from.off('data', read)
      to.write(head)
      from.pipe(to)
    })
  }

  function passes(sender: string): boolean {
    return admitted === null || admitted.has(sender)
  }

  function admit(ids: ReadonlySet<string> | null): void {
    admitted = ids
    for (const [socket, sender] of open) if (sender !== null && !passes(sender)) socket.destroy()
  }

  function close(): void {
    server.close()
    for (const socket of open.keys()) socket.destroy()
  }
}
