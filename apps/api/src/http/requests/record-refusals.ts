/** Records refused requests for the audit log, of every route and protocol. */
import type { ErrorCode } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { everyTenant } from '../../store/connection/tenant.ts'
import type { Refusals } from '../refusals.ts'
import { callerOf } from './audited.ts'

const refusalCodes: ReadonlySet<ErrorCode> = new Set([
  'unauthorized',
  'forbidden',
  'rate_limited',
  'quota_exceeded',
  'store_full',
  'too_many_streams',
])

/** By the route's pattern, never by the requested URL. */
export function recordRefusals(app: FastifyInstance, recorded: Pick<Refusals, 'add'>): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { errorCode: code, errorTenant } = reply
    if (code && refusalCodes.has(code)) {
      // Absent where the guard did not find out who calls.
      const { ip, method, routeOptions } = request
      const principal = request.principal as typeof request.principal | undefined
      const caller = callerOf({ ip, ...(principal && { principal }) })
      const tenant = errorTenant ?? principal?.tenant ?? everyTenant
      recorded.add({ tenant, caller, code, route: `${method} ${routeOptions.url ?? 'none'}` })
    }
    done()
  })
}
