/**
 * Limits what a client can hold by its connections alone, before it is identified: the number of connections, the requests in progress on each,
 * and how long a response may stay unread. Connections above a limit are closed without a response, because such a client would not read an
 * error either.
 *
 * Node parses every request of a read, however many responses are outstanding, and waits forever for an unread response. Event streams have
 * their own limit (`stream/sse-writer.ts`), because they are written past Node's response and are silent between heartbeats.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { finished } from 'node:stream/promises'
import { headLimits } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { CutReason } from '../telemetry/metrics.ts'
import { isLingering } from './requests/files/file-body.ts'

/**
 * The kernel resets a connection that is closed while bytes are unread, and then the client may lose the response. Of a body up to this size, the API
 * reads the rest before it responds.
 */
const mostUnreadBytes = 1024 * 1024

type ConnectionLimits = {
  maxConnections: number
  /** For how long a response may make no progress. */
  stallMs: number
}

export function limitConnections(
  app: FastifyInstance,
  { maxConnections, stallMs }: ConnectionLimits,
  onCut: (why: CutReason) => void,
): void {
  const { server } = app
  /** The responses of each connection that are not written yet. A connection that has sent no request so far is not here. */
  const underWay = new WeakMap<Socket, Set<ServerResponse>>()
  server.maxConnections = maxConnections
  server.on('drop', () => onCut('too_many'))
  server.prependListener('request', begin)
  server.prependListener('checkExpectation', begin)
  // Node starts this clock anew whenever bytes arrive, are written, or are taken by the kernel.
  server.setTimeout(stallMs, cutIfUnread)
  // What was parsed before the connection was cut off is not worked on.
  app.addHook('onRequest', async (request, reply) => (request.raw.socket.destroyed ? reply.hijack() : undefined))
  app.addHook('onSend', async ({ raw }) => {
    // An error here is a client that has left: there is no response to lose.
    if (!raw.complete && !isLingering(raw) && Number(raw.headers['content-length']) <= mostUnreadBytes)
      await finished(raw.resume()).catch(() => {})
  })

  function begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const responses = underWay.get(socket) ?? new Set()
    if (!underWay.has(socket)) socket.once('close', () => closeWaiting(responses))
    underWay.set(socket, responses)
    responses.add(response)
    response.once('close', () => responses.delete(response))
    if (responses.size > headLimits.requestsUnderWay && !socket.destroyed) cut(socket, 'pipelined')
  }

  /** Node closes only the response that is being written, not those that wait behind it: what they hold would never be released. */
  function closeWaiting(responses: ReadonlySet<ServerResponse>): void {
    for (const response of responses) if (!response.socket) response.destroy().emit('close')
  }

  function cutIfUnread(socket: Socket): void {
    const count = underWay.get(socket)?.size
    // A head that does not arrive gets 408; a request in progress has nothing to read yet.
    if (count === undefined || (count > 0 && socket.writableLength === 0)) return
    // A connection that was kept for later and is not used. Node leaves its end to this listener.
    if (count === 0) socket.destroy()
    else cut(socket, 'unread')
  }

  function cut(socket: Socket, why: CutReason): void {
    socket.destroy()
    onCut(why)
  }
}
