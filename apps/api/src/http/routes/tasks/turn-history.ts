/** How turns ran: their attempts, and the steps that they took. */
import * as tasks from '@rivulet/contract/tasks'
import * as turns from '@rivulet/contract/turns'
import type { FastifyInstance } from 'fastify'
import { listSteps } from '../../../store/tasks/steps.ts'
import { listAttempts } from '../../../store/turns/attempts.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function turnHistoryRoutes(scope: FastifyInstance, { databaseFor }: Services): void {
  serve(scope, turns.listAttempts, async ({ params: { id, number }, principal }) => ({
    data: await listAttempts(databaseFor(principal), principal.tenant, id, number, principal.token === undefined),
  }))

  serve(scope, tasks.listSteps, async ({ params: { id }, principal }) => ({
    data: await listSteps(databaseFor(principal), principal.tenant, id),
  }))
}
