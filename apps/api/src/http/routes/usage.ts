/** What the responses of models used, and what they cost. */
import * as contract from '@rivulet/contract/usage'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { everyone, everyTenant } from '../../store/connection/tenant.ts'
import { sumFiles } from '../../store/files/file-rows.ts'
import { readUsage } from '../../store/usage/read-usage.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function usageRoutes(scope: FastifyInstance, { listsFor, config: { maxFileBytesPerTenant } }: Services): void {
  serve(scope, contract.readUsage, async ({ query, principal }) => {
    const isOfAll = query.by === 'tenant'
    if (isOfAll && !principal.isRoot) throw new RivuletError('forbidden', 'Only the root key can see the usage of all tenants')
    const [db, tenant] = isOfAll ? [listsFor(everyone), everyTenant] : [listsFor(principal), principal.tenant]
    const report = await readUsage(db, tenant, query)
    // A key that is limited to agents sees only some of the files that the limit is about.
    const sums = principal.agents ? null : await sumFiles(db, tenant)
    return { ...report, ...(sums && { files: { ...sums, maxBytes: isOfAll ? null : maxFileBytesPerTenant } }) }
  })
}
