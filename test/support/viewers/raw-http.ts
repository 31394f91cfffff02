/**
 * HTTP as bytes: for requests that no honest client sends, and for reading the answer all the same.
 *
 * An answer is there when its body is complete, or when the connection has ended; a stream is answered as soon as its head is there.
 */
import { connect } from 'node:net'

export type RawReply = { status: number; headers: Record<string, string>; body: string }

export type RawOutcome = {
  /** In the order in which they came. Informational ones (1xx) are left out. */
  replies: RawReply[]
  /** Whether the server ended the connection. */
  isClosed: boolean
}

type RawOptions = {
  /** How many responses to wait for. Default 1. */
  replies?: number
  /** Wait until the server has ended the connection, too. */
  untilClosed?: boolean
  /** Leave as soon as everything is written. */
  leavesAtOnce?: boolean
  timeoutMs?: number
}

/** Sends the pieces one after the other, each in a write of its own, and leaves when it has heard what it waited for. */
export function sendRaw(url: string, pieces: readonly (string | Buffer)[], options: RawOptions = {}): Promise<RawOutcome> {
  const { replies: wanted = 1, untilClosed = false, leavesAtOnce = false, timeoutMs = 300_000 } = options
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let received: Buffer = Buffer.alloc(0)
    let isClosed = false
    const impatience = setTimeout(() => settle(new Error(`No answer within ${timeoutMs} ms`)), timeoutMs)
    socket.setNoDelay(true)
    socket.on('connect', () => void write())
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes])
      look()
    })
    socket.on('end', () => {
      isClosed = true
      look()
    })
    // What was still to be sent is refused when the server has answered and gone.
    socket.on('error', () => {})
    socket.on('close', () => {
      isClosed = true
      settle()
    })

    async function write(): Promise<void> {
      for (const piece of pieces) {
        if (socket.destroyed || !socket.writable) return
        await new Promise(done => socket.write(piece, done))
      }
      if (leavesAtOnce) settle()
    }

    function look(): void {
      const replies = parseReplies(received, isClosed)
      if (isClosed || replies.some(isStream) || (replies.length >= wanted && !untilClosed)) settle()
    }

    function settle(error?: Error): void {
      clearTimeout(impatience)
      socket.destroy()
      if (error) reject(error)
      else resolve({ replies: parseReplies(received, isClosed), isClosed })
    }
  })
}

export type RawRequest = { headers?: Record<string, string>; body?: string | Buffer }

/** A request as it should be, but for what is said otherwise. An empty header value leaves the header out. */
export function rawRequest(route: string, { headers = {}, body }: RawRequest = {}): Buffer {
  const all = {
    host: '127.0.0.1',
    connection: 'close',
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]))
  return Buffer.concat([Buffer.from([`${route} HTTP/1.1`, ...lines, '', ''].join('\r\n'), 'latin1'), Buffer.from(body ?? '')])
}

function parseReplies(bytes: Buffer, hasEnded: boolean): RawReply[] {
  const replies: RawReply[] = []
  for (let rest = bytes; ; ) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return replies
    const [statusLine = '', ...lines] = rest.subarray(0, end).toString('latin1').split('\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1] ?? 0)
    const headers = Object.fromEntries(
      lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    rest = rest.subarray(end + 4)
    if (status >= 100 && status < 200) continue
    const taken = takeBody(rest, status, headers, hasEnded)
    if (!taken) return replies
    replies.push({ status, headers, body: taken.body })
    rest = rest.subarray(taken.length)
  }
}

function isStream({ headers }: Pick<RawReply, 'headers'>): boolean {
  return headers['content-type']?.startsWith('text/event-stream') ?? false
}

type Taken = { body: string; length: number }

function takeBody(rest: Buffer, status: number, headers: Record<string, string>, hasEnded: boolean): Taken | null {
  if (status === 204 || status === 304) return { body: '', length: 0 }
  if (isStream({ headers })) return { body: rest.toString(), length: rest.length }
  if (headers['transfer-encoding'] === 'chunked') return takeChunks(rest)
  const length = Number(headers['content-length'] ?? (hasEnded ? rest.length : Number.POSITIVE_INFINITY))
  // The answer to a HEAD says how long its body would be.
  return rest.length >= length || hasEnded ? { body: rest.subarray(0, length).toString(), length } : null
}

function takeChunks(rest: Buffer): Taken | null {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    if (lineEnd < 0) return null
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString(), 16)
    const next = lineEnd + 2 + size + 2
    if (rest.length < next) return null
    if (size === 0) return { body: Buffer.concat(parts).toString(), length: next }
    parts.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = next
  }
}
