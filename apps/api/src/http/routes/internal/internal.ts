/** The calls of workers. The lease in Postgres decides which worker runs a turn; the log follows. */
import * as contract from '@rivulet/contract/internal'
import type { FastifyInstance } from 'fastify'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import { appendRoutes } from './appends.ts'
import { claimRoutes, createClaimCalls } from './claims.ts'
import { workerFileRoutes } from './files.ts'
import { createHeldTurns } from './held-turns.ts'
import { createLeaseCalls, leaseRoutes } from './leases.ts'
import { pollRoutes } from './polls.ts'
import { createStepCalls, stepRoutes } from './steps.ts'
import { createStoreCalls } from './store.ts'
import { createWaitCalls, workerWaitRoutes } from './waits.ts'
import { createTenantShares } from './worker-shares.ts'

export type WorkerCalls = ReturnType<typeof createWorkerCalls>

/** The calls of workers, of whichever protocol. */
export function createWorkerCalls(services: Services) {
  const held = createHeldTurns(services.db)
  const claims = createClaimCalls(services, held)
  const leases = createLeaseCalls(services, held)
  const steps = createStepCalls(services, held)
  const waits = createWaitCalls(services, held)
  return { ...{ held, claims, leases, steps, waits }, useStore: createStoreCalls(services, held), share: createTenantShares() }
}

export function internalRoutes(
  scope: FastifyInstance,
  services: Services,
  { share, held, claims, leases, steps, waits, useStore }: WorkerCalls,
): void {
  share(scope, { heartbeat: 'beat', hello: 'beat', next: 'poll', hints: 'poll', file: null, files: null })
  claimRoutes(scope, claims)
  leaseRoutes(scope, leases)
  appendRoutes(scope, services, held)
  pollRoutes(scope, services)
  stepRoutes(scope, steps)
  workerWaitRoutes(scope, waits)
  serve(scope, contract.useStore, useStore)
  workerFileRoutes(scope, services, held)
}
