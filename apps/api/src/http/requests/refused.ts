/** Records refused requests for the audit log, of every route and protocol, with the route's pattern and never with the requested URL. */
import type { ErrorCode } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { Refusals } from '../../access/refusals.ts'
import { everyTenant } from '../../store/connection/tenant.ts'
import { callerOf } from './audited.ts'

const refusals: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden', 'rate_limited', 'quota_exceeded', 'too_many_streams'])

export function recordRefusals(app: FastifyInstance, recorded: Pick<Refusals, 'add'>): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { errorCode: code } = reply
    if (code && refusals.has(code)) {
      // Absent where the guard did not find out who calls.
      const { ip, method, routeOptions } = request
      const principal = request.principal as typeof request.principal | undefined
      const caller = callerOf({ ip, ...(principal && { principal }) })
      recorded.add({ tenant: principal?.tenant ?? everyTenant, caller, code, route: `${method} ${routeOptions.url ?? 'none'}` })
    }
    done()
  })
}
