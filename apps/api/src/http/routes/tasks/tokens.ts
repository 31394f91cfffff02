/** Creates and revokes tokens for one task, for browsers. A key can grant only rights that it has itself, and a token cannot create another. */
import * as contract from '@rivulet/contract/tokens'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { holds } from '../../../access/principal.ts'
import { beginTokenSession } from '../../../store/access/token-revocations.ts'
import { getWait } from '../../../store/waits/answer-wait.ts'
import { createAudit } from '../../requests/audited.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function tokenRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, access } = services
  const { audited, note } = createAudit(services)

  serve(scope, contract.createToken, async (request, reply) => {
    const { body, principal } = request
    const { id: task } = request.params
    const { tenant, key, expiresAt: until } = principal
    const { ttlSeconds, subject = null, wait } = body
    const can = [...new Set(body.can)]
    if (can.some(right => right !== 'read') && !holds(principal, 'tasks:write')) {
      throw new RivuletError('forbidden', 'This key or token does not have the required scope')
    }
    if (wait !== undefined && !can.includes('answer'))
      throw new RivuletError('validation_failed', 'Request validation failed', {
        details: [{ path: '/wait', reason: 'Only with the right answer' }],
      })
    if (wait !== undefined) await getWait(databaseFor(principal), tenant, task, wait)
    const details = { can, ttlSeconds, ...(subject !== null && { subject }), ...(wait !== undefined && { wait }) }
    const change = { target: task, details } as const
    const startedAt = await audited(databaseFor(tenant), request, change, tx => beginTokenSession(tx, principal, task))
    const { token, expiresAt } = access.tokens.issue({
      tenant,
      task,
      can,
      key,
      subject,
      startedAt,
      ttlSeconds,
      until,
      ...(wait !== undefined && { wait }),
    })
    reply.header('cache-control', 'no-store')
    return { token, can, expiresAt }
  })

  serve(scope, contract.revokeTokens, async request => {
    const { id: task } = request.params
    const { subject } = request.query
    const change = { target: task, details: { ...(subject !== undefined && { subject }) } } as const
    await access.revocations.revoke(request.principal, { task, subject: subject ?? null }, note(request, change))
    return null
  })
}
