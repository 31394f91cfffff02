/**
 * Rejects requests by their head, or that Node could not parse, with the one shape of an error.
 *
 * Node itself sends no response to some of them, and silently drops headers above its limit.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, errorTable, headLimits, RivuletError } from '@rivulet/protocol'
import type { ConnectionError, FastifyInstance } from 'fastify'
import { errorBody } from '../errors.ts'

export function checkHeads(app: FastifyInstance): void {
  // One more, to see that there was one more.
  app.server.maxHeadersCount = headLimits.headerCount + 1
  app.server.on('checkExpectation', rejectExpectation)
  app.server.on('connect', (_request, socket) => rejectTunnel(socket as Socket))
  app.addHook('onRequest', async (request, reply) => {
    const { rawHeaders, headers, httpVersion } = request.raw
    if (rawHeaders.length / 2 > headLimits.headerCount) {
      reply.header('connection', 'close')
      throw new RivuletError('headers_too_large', messages.headers_too_large)
    }
    if (!headers.host && httpVersion === '1.1') {
      reply.header('connection', 'close')
      throw new RivuletError('bad_request', 'Missing Host header')
    }
  })
}

/** Connections whose request may take longer than others to arrive, because its route watches over it. */
const slowBodies = new WeakSet<Socket>()

/** Returns the function that ends it. */
export function allowSlowBody(socket: Socket): () => void {
  slowBodies.add(socket)
  return () => slowBodies.delete(socket)
}

/** Fastify's `clientErrorHandler`. */
export function rejectBrokenRequest(error: ConnectionError, socket: Socket): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && slowBodies.has(socket)) return
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding(socket)) {
    socket.destroy()
    return
  }
  reject(socket, parserCodes[error.code] ?? 'bad_request')
}

/** Without a listener Node closes the connection without a word; with one, the socket is ours alone, and so are its errors. */
function rejectTunnel(socket: Socket): void {
  socket.on('error', () => socket.destroy())
  reject(socket, 'bad_request')
  socket.destroySoon()
}

function reject(socket: Socket, code: BrokenCode): void {
  const body = describe(code)
  const head = [
    `HTTP/1.1 ${errorTable[code].status} ${code}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end([...head, '', body].join('\r\n'))
}

function rejectExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const body = describe('expectation_failed')
  response
    .writeHead(417, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body), connection: 'close' })
    .end(body)
}

/** Whether a response is being written on this connection, such as a stream: no other may be written into it. */
function isResponding(socket: Socket & { _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent ?? false
}

type BrokenCode = keyof typeof messages & ErrorCode

const messages = {
  bad_request: 'Malformed request',
  headers_too_large: `A request may have at most ${headLimits.headerBytes} bytes of headers and ${headLimits.headerCount} headers`,
  request_timeout: `The request did not arrive within ${headLimits.requestMs} ms`,
  expectation_failed: 'The only supported Expect header is 100-continue',
} as const

const parserCodes: Record<string, BrokenCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

function describe(code: BrokenCode): string {
  return JSON.stringify(errorBody(code, messages[code], randomUUID()))
}
