/** Decides which pages of other origins may call. Keys are sent in a header and never in a cookie, so no response allows credentials. */
import type { FastifyInstance } from 'fastify'

/** The asterisk stands for the headers of other protocols' clients, of which OpenAI's SDK alone has a dozen. It does not stand for `authorization`. */
const allowedHeaders =
  '*, authorization, content-digest, content-type, idempotency-key, if-match, if-none-match, if-range, last-event-id, range, traceparent, x-filename'
const exposedHeaders = 'content-disposition, content-range, etag, retry-after, idempotent-replayed, x-should-retry'

export function allowOrigins(app: FastifyInstance, origins: ReadonlySet<string>): void {
  if (origins.size === 0) return
  app.addHook('onRequest', async (request, reply) => {
    const { origin, 'access-control-request-method': wanted } = request.headers
    reply.header('vary', 'origin')
    if (origin === undefined || !origins.has(origin)) return
    reply.header('access-control-allow-origin', origin)
    if (request.method !== 'OPTIONS' || wanted === undefined) {
      reply.header('access-control-expose-headers', exposedHeaders)
      return
    }
    reply.header('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE').header('access-control-allow-headers', allowedHeaders)
    return reply.header('access-control-max-age', '600').status(204).send()
  })
}
