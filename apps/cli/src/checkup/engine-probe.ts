/** Checks that the server behind a URL is of the right kind, with a request that needs no password. */
import { createConnection, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

const patienceMs = 5_000

/** Rejects with a sentence about what is wrong. */
export async function probeRedis(url: string): Promise<void> {
  const reply = await ask(url, 6379, Buffer.from('PING\r\n'))
  if (!/^(\+PONG|-NOAUTH|-NOPERM)/.test(reply)) throw new Error(`${placeOf(url, 6379)} does not answer as Redis does`)
}

export async function probePostgres(url: string): Promise<void> {
  // SSLRequest: length 8, code 80877103. The answer is one letter.
  const reply = await ask(url, 5432, Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]))
  if (!/^[SN]/.test(reply)) throw new Error(`${placeOf(url, 5432)} does not answer as Postgres does`)
}

function ask(url: string, defaultPort: number, question: Buffer): Promise<string> {
  const place = placeOf(url, defaultPort)
  return new Promise((resolve, reject) => {
    const socket = open(url, defaultPort)
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
      reject(new Error(`${place} ${reason}`))
    }
  })
}

function open(url: string, defaultPort: number): Socket {
  const { hostname, port, protocol } = firstOf(url)
  const address = { host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(port) || defaultPort }
  return protocol === 'rediss:' ? connectTls({ ...address, servername: address.host }) : createConnection(address)
}

/** Without user and password. */
function placeOf(url: string, defaultPort: number): string {
  const { hostname, port } = firstOf(url)
  return `${hostname || '127.0.0.1'}:${port || defaultPort}`
}

/** Of a cluster, the server that is named first. */
function firstOf(url: string): URL {
  return new URL(url.split(',')[0] ?? '')
}
