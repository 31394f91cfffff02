/** The calls of workers. The lease in Postgres decides which worker runs a turn; the log follows. */
import type { FastifyInstance } from 'fastify'
import type { Services } from '../../services.ts'
import { appendRoutes } from './appends.ts'
import { claimRoutes, createClaimCalls } from './claims.ts'
import { workerFileRoutes } from './files.ts'
import { createHeldTurns } from './held-turns.ts'
import { createLeaseCalls, leaseRoutes } from './leases.ts'
import { pollRoutes } from './polls.ts'
import { createStepCalls, stepRoutes } from './steps.ts'
import { createWaitCalls, workerWaitRoutes } from './waits.ts'
import { createTenantShares } from './worker-shares.ts'

export type WorkerCalls = ReturnType<typeof createWorkerCalls>

/** The calls of workers, of whichever protocol. */
export function createWorkerCalls(services: Services) {
  const held = createHeldTurns(services.db)
  const claims = createClaimCalls(services, held)
  const leases = createLeaseCalls(services, held)
  const steps = createStepCalls(services, held)
  return { ...{ held, claims, leases, steps }, waits: createWaitCalls(services, held), share: createTenantShares() }
}

export function internalRoutes(
  scope: FastifyInstance,
  services: Services,
  { share, held, claims, leases, steps, waits }: WorkerCalls,
): void {
  share(scope, { heartbeat: 'beat', hello: 'beat', next: 'poll', hints: 'poll', file: null, files: null })
  claimRoutes(scope, claims)
  leaseRoutes(scope, leases)
  appendRoutes(scope, services, held)
  pollRoutes(scope, services)
  stepRoutes(scope, steps)
  workerWaitRoutes(scope, waits)
  workerFileRoutes(scope, services, held)
}
