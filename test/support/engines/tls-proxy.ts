/** A server that speaks TLS before an engine that does not: as a managed Redis or Postgres does. Its certificate is signed by itself. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { onTestFinished } from 'vitest'

export type Certificate = { key: string; cert: string; path: string }

/** Null where no openssl is installed. */
export function createCertificate(): Certificate | null {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [key, path] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const about = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', path]
  try {
    execFileSync('openssl', [...request, ...about], { stdio: 'ignore' })
  } catch {
    return null
  }
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(path, 'utf8'), path }
}

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
