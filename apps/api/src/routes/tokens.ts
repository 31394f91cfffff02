/** Tokens for one task, for browsers. A key can pass on what it may do itself, and no token can be had for a token. */
import { createTokenBody, RivuletError, taskIdSchema, tokenAnswer } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { holds } from '../access/principal.ts'
import type { Services } from '../services.ts'
import { getTask } from '../store/read.ts'

export function tokenRoutes(scope: FastifyInstance, { of, door }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const params = z.object({ id: taskIdSchema })
  const config = { access: { scope: 'tasks:read' } } as const
  const schema = { tags: ['tasks'], params, body: createTokenBody, response: { 201: tokenAnswer } }
  app.post('/tasks/:id/tokens', { config, schema }, async ({ params: { id }, body, principal }, reply) => {
    const { tenant, key, expiresAt: until } = principal
    const { ttlSeconds } = body
    const can = [...new Set(body.can)]
    if (can.some(right => right !== 'read') && !holds(principal, 'tasks:write')) {
      throw new RivuletError('forbidden', 'This key may not do this')
    }
    const task = await getTask(of(tenant), tenant, id)
    const signed = door.tokens.sign({ tenant, task: task.id, can, key, ttlSeconds, until })
    return reply
      .header('cache-control', 'no-store')
      .status(201)
      .send({ ...signed, can })
  })
}
