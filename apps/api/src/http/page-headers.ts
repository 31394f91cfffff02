/** The security headers of the API's pages: load nothing from other origins, do not guess content types, do not allow framing. */
import type { FastifyInstance } from 'fastify'

/** Of every response: an error or a file can be opened in a frame like a page. */
export function rejectFrames(app: FastifyInstance): void {
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff').header('x-frame-options', 'DENY')
  })
}

/** @param sources what a page needs beyond its own origin, by directive */
export function pageHeaders(sources: Record<string, string>): Record<string, string> {
  const directives = {
    'default-src': "'self'",
    ...sources,
    'object-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
  }
  const policy = Object.entries(directives).map(([directive, source]) => `${directive} ${source}`)
  return { 'content-security-policy': policy.join('; '), 'referrer-policy': 'no-referrer' }
}
