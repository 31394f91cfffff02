/** The calls of workers. The lease in Postgres decides which worker runs a turn; the log follows. */
import type { FastifyInstance } from 'fastify'
import type { Services } from '../../services.ts'
import { appendRoutes } from './appends.ts'
import { claimRoutes } from './claims.ts'
import { workerFileRoutes } from './files.ts'
import { createHeldTurns } from './held-turns.ts'
import { leaseRoutes } from './leases.ts'
import { pollRoutes } from './polls.ts'
import { stepRoutes } from './steps.ts'
import { workerWaitRoutes } from './waits.ts'
import { shareAmongTenants } from './worker-shares.ts'

export function internalRoutes(scope: FastifyInstance, services: Services): void {
  const held = createHeldTurns(services.db)
  shareAmongTenants(scope)
  claimRoutes(scope, services, held)
  leaseRoutes(scope, services, held)
  appendRoutes(scope, services, held)
  pollRoutes(scope, services)
  stepRoutes(scope, services, held)
  workerWaitRoutes(scope, services, held)
  workerFileRoutes(scope, services, held)
}
