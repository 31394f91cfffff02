/** How turns ran: their attempts, and the steps that they took. */
import { attemptSchema, stepSchema, turnNumberSchema } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { listSteps } from '../../../store/tasks/steps.ts'
import { listAttempts } from '../../../store/turns/attempts.ts'
import type { Services } from '../../services.ts'
import { params, readingOne } from './task-schemas.ts'

const tags = ['tasks']
const attemptList = z.object({ data: z.array(attemptSchema) })
const stepList = z.object({ data: z.array(stepSchema) })

export function turnHistoryRoutes(scope: FastifyInstance, { databaseFor }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.get(
    '/tasks/:id/turns/:number/attempts',
    { config: readingOne, schema: { tags, params: params.extend({ number: turnNumberSchema }), response: { 200: attemptList } } },
    async ({ params: { id, number }, principal }) => ({
      data: await listAttempts(databaseFor(principal), principal.tenant, id, number, principal.token === undefined),
    }),
  )

  // For callers with a key alone, because names of steps tell how an agent works.
  app.get(
    '/tasks/:id/steps',
    { config: { access: { scope: 'tasks:read' } }, schema: { tags, params, response: { 200: stepList } } },
    async ({ params: { id }, principal }) => ({ data: await listSteps(databaseFor(principal), principal.tenant, id) }),
  )
}
