/** Creates and revokes tokens for one task, for browsers. A key can grant only rights that it has itself, and a token cannot create another. */
import { createTokenBody, RivuletError, revokeTokensQuery, taskIdSchema, tokenResponse } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { holds } from '../../../access/principal.ts'
import { beginTokenSession } from '../../../store/access/token-revocations.ts'
import { getWait } from '../../../store/waits/answer-wait.ts'
import type { Services } from '../../services.ts'

export function tokenRoutes(scope: FastifyInstance, { databaseFor, access }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const params = z.object({ id: taskIdSchema })
  const making = { access: { scope: 'tasks:read' } } as const
  const schema = { tags: ['tasks'], params, body: createTokenBody, response: { 201: tokenResponse } }
  app.post('/tasks/:id/tokens', { config: making, schema }, async ({ params: { id: task }, body, principal }, reply) => {
    const { tenant, key, expiresAt: until } = principal
    const { ttlSeconds, subject = null, wait } = body
    const can = [...new Set(body.can)]
    if (can.some(right => right !== 'read') && !holds(principal, 'tasks:write')) {
      throw new RivuletError('forbidden', 'This key or token does not have the required scope')
    }
    if (wait !== undefined && !can.includes('answer'))
      throw new RivuletError('validation_failed', 'Request validation failed', {
        details: [{ path: '/wait', reason: 'Only with the right answer' }],
      })
    if (wait !== undefined) await getWait(databaseFor(tenant), tenant, task, wait)
    const startedAt = await beginTokenSession(databaseFor(tenant), tenant, task)
    const { token, expiresAt } = access.tokens.issue({
      tenant,
      task,
      can,
      key,
      subject,
      startedAt,
      ttlSeconds,
      until,
      ...(wait !== undefined && { wait }),
    })
    return reply.header('cache-control', 'no-store').status(201).send({ token, can, expiresAt })
  })

  const revoking = { access: { scope: 'tasks:write' } } as const
  const revocation = { tags: ['tasks'], params, querystring: revokeTokensQuery, response: { 204: z.null() } }
  app.delete('/tasks/:id/tokens', { config: revoking, schema: revocation }, async ({ params: { id: task }, query, principal }, reply) => {
    await access.revocations.revoke(principal.tenant, { task, subject: query.subject ?? null })
    return reply.status(204).send(null)
  })
}
