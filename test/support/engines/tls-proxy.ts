/** A server that speaks TLS before an engine that does not: as a managed Redis or Postgres does. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { Certificate } from './certificate.ts'

/** @param engine of Postgres: its client asks for TLS in its own protocol first */
export async function startTlsProxy(engine: 'redis' | 'postgres', target: string, { key, cert }: Certificate): Promise<string> {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  const server = createServer(async plain => {
    for (const socket of [plain]) open.add(socket.on('error', () => {}))
    // The request for TLS has 8 bytes, and S accepts it.
    if (engine === 'postgres') {
      await once(plain, 'readable')
      plain.read(8)
      plain.write('S')
    }
    const secure = new TLSSocket(plain, { isServer: true, key, cert })
    const behind = connect(Number(port), hostname)
    open.add(behind)
    for (const socket of [secure, behind]) socket.on('error', () => plain.destroy())
    secure.pipe(behind).pipe(secure)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const address = Object.assign(new URL(target), { hostname: 'localhost', port: String((server.address() as AddressInfo).port) }).href
  return engine === 'redis' ? address.replace('redis:', 'rediss:') : `${address}?sslmode=verify-full`
}
