/** The public protocol of workers: the same calls as those of `/internal`, with a server that composes the events from the worker's updates. */
import * as contract from '@rivulet/contract/worker'
import type { FastifyInstance } from 'fastify'
import { describeApi } from '../../openapi.ts'
import { type RequestOf, serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import { createStaticFile, type StaticFile, sendStatic } from '../../static-files.ts'
import { throwIfFull } from '../internal/appends.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import { workerClaimRoutes } from './claims.ts'
import { ComposedTurns } from './composed-turns.ts'
import { workerProtocolFileRoutes } from './files.ts'
import { workerLeaseRoutes } from './leases.ts'
import { workerTurnRoutes } from './turn-calls.ts'

const prefix = '/worker/v1'

export function workerRoutes(scope: FastifyInstance, services: Services, calls: WorkerCalls): void {
  const turns = new ComposedTurns(services, calls)
  calls.share(scope, { hello: 'beat', heartbeat: 'watch', claim: 'poll', files: null, ':id': null })
  workerClaimRoutes(scope, services, calls, turns)
  workerLeaseRoutes(scope, services, calls, turns)
  workerTurnRoutes(scope, calls, turns)
  workerProtocolFileRoutes(scope, services, calls)
  const { limits } = services.config
  const largeBody = { bodyLimit: 2 * limits.turnBytes + limits.bodyBytes, onRequest: calls.held.requireHolder(limits.bodyBytes) }
  const append = async (request: RequestOf<typeof contract.workerAppend>) => ({
    results: await turns.appendAll(request, request.body.appends).catch(throwIfFull),
  })
  serve(scope, contract.workerAppend, append, largeBody)
}

/** The part of the API's description that is about these routes. */
export function describeWorkerProtocol(app: FastifyInstance): void {
  let description: Promise<StaticFile> | null = null
  app.get(`${prefix}/openapi.json`, { schema: { hide: true } }, async (_, reply) => {
    description ??= createStaticFile('application/json; charset=utf-8', JSON.stringify(describe(app)))
    return sendStatic(reply, await description)
  })
}

function describe(app: FastifyInstance): object {
  const { info, ...rest } = describeApi(app, path => path.startsWith(`${prefix}/`))
  return { ...rest, info: { ...info, title: 'The worker protocol of Rivulet' } }
}
