/** Counts responses by the route's pattern, never by the requested URL. */
import type { ErrorCode } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Tenant } from '../store/connection/tenant.ts'
import type { Metrics } from '../telemetry/metrics.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Why the request was refused or has failed. */
    errorCode?: ErrorCode
    /** Whose limit refused it, if that is not the caller's. */
    errorTenant?: Tenant
    /** Whether the response waited for the end of a turn, which says nothing about the speed of the API. */
    hasWaited?: boolean
  }
}

export function countRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', (request, reply, done) => {
    countRequest(metrics, request, reply.statusCode)
    if (!reply.hasWaited) metrics.requestSeconds.observe({ method: request.method, route: routeOf(request) }, reply.elapsedTime / 1_000)
    if (reply.errorCode) metrics.errors.inc({ code: reply.errorCode })
    done()
  })
}

/** Called directly only for streams: Fastify does not hear how those end. */
export function countRequest(metrics: Metrics, request: FastifyRequest, status: number): void {
  metrics.requests.inc({ method: request.method, route: routeOf(request), status: String(status) })
}

function routeOf({ routeOptions: { url } }: FastifyRequest): string {
  return url ?? 'none'
}
