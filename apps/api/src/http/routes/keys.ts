/**
 * Manages keys, for the scope `admin`. A key of a tenant manages the keys of its tenant; the root key manages all of them, and it alone can create a
 * key for another tenant or for all.
 *
 * A secret is in one response and nowhere else. So their rows reject an Idempotency-Key: to repeat the response, the API would have to store it.
 */
import * as contract from '@rivulet/contract/keys'
import { rotateKeyBody } from '@rivulet/contract/keys'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createKeyring, type Keyring } from '../../access/keyring.ts'
import type { Principal } from '../../access/principal.ts'
import { everyTenant } from '../../store/connection/tenant.ts'
import { createAudit } from '../requests/audited.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function keyRoutes(scope: FastifyInstance, services: Services): void {
  const { db, access, config: own } = services
  const { pepper, maxKeysPerTenant: maxKeys } = own
  const { auditor } = createAudit(services)

  serve(scope, contract.createKey, async (request, reply) => {
    const { body, principal } = request
    requireTenant(principal, body.tenant)
    if (body.allTenants && !principal.isRoot) throw new RivuletError('forbidden', 'Only the root key can create a key for all tenants')
    const created = await keyringOf(request).create(body)
    logChange(request, created.key.id, 'created a key')
    reply.header('cache-control', 'no-store')
    return created
  })

  serve(scope, contract.listKeys, async request => {
    requireTenant(request.principal, request.query.tenant)
    return keyringOf(request).list(request.query)
  })

  serve(scope, contract.revokeKey, async request => {
    const key = await keyringOf(request).revoke(request.params.id)
    access.keys.forget(key.id)
    logChange(request, key.id, 'revoked a key')
    return { key }
  })

  serve(scope, contract.rotateKey, async (request, reply) => {
    const rotated = await keyringOf(request).rotate(request.params.id, request.body ?? rotateKeyBody.parse({}))
    access.keys.forget(rotated.replaced.id)
    logChange(request, rotated.replaced.id, 'rotated a key')
    reply.header('cache-control', 'no-store')
    return rotated
  })

  function keyringOf(request: FastifyRequest): Keyring {
    const { isRoot, tenant } = request.principal
    return createKeyring({ db, manager: isRoot ? everyTenant : tenant, pepper: requirePepper, maxKeys, audit: auditor(request) })
  }

  function requirePepper(): string {
    if (!pepper) throw new RivuletError('bad_request', 'This API has no KEY_PEPPER, so it cannot create keys')
    return pepper
  }
}

function requireTenant({ isRoot, tenant }: Principal, named: string | undefined): void {
  if (named !== undefined && named !== tenant && !isRoot)
    throw new RivuletError('forbidden', 'Only the root key can manage the keys of another tenant')
}

/** The ids of both keys: a log line has no secret. */
function logChange({ log, principal }: FastifyRequest, key: string, change: string): void {
  log.info({ key, by: principal.key }, change)
}
