/** Bearer keys. Compared as digests in constant time; a missing key and a wrong one get the same answer. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'

/** Guards every route of a scope. Without a key the scope is open: local development. */
export function requireKey(scope: FastifyInstance, key: string | undefined): void {
  if (key === undefined) return
  const expected = digest(key)
  scope.addHook('onRequest', async (request, reply) => {
    const [scheme, given = ''] = (request.headers.authorization ?? '').split(' ')
    if (timingSafeEqual(digest(given), expected) && scheme?.toLowerCase() === 'bearer') return
    reply.header('www-authenticate', 'Bearer')
    throw new RivuletError('unauthorized', 'A valid key is needed: Authorization: Bearer <key>')
  })
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
