/** Reads the audit log, for the scope `admin`. A key of a tenant reads the entries of its tenant; the root key reads those of all. */
import * as contract from '@rivulet/contract/audit'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { listAudit } from '../../store/access/audit.ts'
import { everyTenant } from '../../store/connection/tenant.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function auditRoutes(scope: FastifyInstance, { db, listsFor }: Services): void {
  serve(scope, contract.listAudit, async ({ query, principal }) => {
    const { isRoot, tenant } = principal
    if (query.tenant !== undefined && query.tenant !== tenant && !isRoot)
      throw new RivuletError('forbidden', 'Only the root key can read the audit log of another tenant')
    const wanted = { ...query, limit: query.limit + 1 }
    const found = await (isRoot ? listAudit(db, everyTenant, wanted) : listAudit(listsFor(principal), tenant, wanted))
    const data = found.slice(0, query.limit)
    return { data, nextCursor: found.length > data.length ? (data.at(-1)?.id ?? null) : null }
  })
}
