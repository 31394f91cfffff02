/** Checks that the server behind a URL is of the right kind, with a request that needs no password. */
import { createConnection, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseRedisUrl, type RedisAddress } from '@rivulet/runtime/redis-url'

const patienceMs = 5_000

type Server = RedisAddress & { isTls: boolean }

/** Rejects with a sentence about what is wrong. Of a cluster, and of Sentinels, the first that is named is asked. */
export async function probeRedis(url: string): Promise<void> {
  const { isTls, addresses } = parseRedisUrl(url)
  const server = { ...addresses[0], isTls }
  const reply = await ask(server, Buffer.from('PING\r\n'))
  if (!/^(\+PONG|-NOAUTH|-NOPERM)/.test(reply)) throw new Error(`${placeOf(server)} does not answer as Redis does`)
}

export async function probePostgres(url: string): Promise<void> {
  const { hostname, port } = new URL(url.split(',')[0] ?? '')
  const server = { host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(port) || 5432, isTls: false }
  // SSLRequest: length 8, code 80877103. The answer is one letter.
  const reply = await ask(server, Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]))
  if (!/^[SN]/.test(reply)) throw new Error(`${placeOf(server)} does not answer as Postgres does`)
}

function ask(server: Server, question: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const { host, port, isTls } = server
    const socket: Socket = isTls ? connectTls({ host, port, servername: host }) : createConnection({ host, port })
    socket.setTimeout(patienceMs, () => fail('does not answer'))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      fail(error.code === 'ECONNREFUSED' ? 'refuses connections' : `cannot be reached (${error.code ?? error.message})`),
    )
    socket.once('close', () => fail('hangs up'))
    socket.once('data', (bytes: Buffer) => {
      resolve(bytes.toString('latin1'))
      socket.destroy()
    })
    socket.write(question)

    function fail(reason: string): void {
      socket.destroy()
      reject(new Error(`${placeOf(server)} ${reason}`))
    }
  })
}

function placeOf({ host, port }: Server): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
