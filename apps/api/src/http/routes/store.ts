/** The memory of a tenant above its tasks. A key that is limited to agents reaches the scopes of these agents, and no others. */
import * as contract from '@rivulet/contract/store'
import { type Json, mergePatch, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { mayRead, mayUse, type Principal } from '../../access/principal.ts'
import { changeValue, clearScope, findValue, listValues, removeValue } from '../../store/memory/memory.ts'
import { createAudit } from '../requests/audited.ts'
import { conditionsOf, etagOf } from '../requests/conditions.ts'
import { givenKey } from '../requests/idempotent.ts'
import { type RequestOf, serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function storeRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, listsFor, config } = services
  const { audited } = createAudit(services)

  serve(scope, contract.listStore, async ({ params, query, principal }) => {
    requireScope(principal, params.scope)
    return listValues(listsFor(principal), { tenant: principal.tenant, ...params }, query, config.limits.pageBytes)
  })

  serve(scope, contract.getStored, async ({ params, principal }, reply) => {
    requireScope(principal, params.scope)
    const stored = await findValue(databaseFor(principal), { tenant: principal.tenant, ...params })
    if (!stored) throw noValue()
    reply.header('etag', etagOf(stored.version))
    return stored
  })

  serve(scope, contract.putStored, async (request, reply) => change(request, reply, () => request.body.value))

  serve(scope, contract.patchStored, async (request, reply) =>
    change(request, reply, stored => mergePatch(stored ?? null, request.body.value)),
  )

  serve(scope, contract.deleteStored, async request => {
    const { params, principal } = request
    requireScope(principal, params.scope)
    const accepts = conditionsOf(request)
    await audited(databaseFor(principal.tenant), request, { target: targetOf(params) }, async tx => {
      if (!(await removeValue(tx, { tenant: principal.tenant, ...params }, accepts))) throw noValue()
    })
    return null
  })

  serve(scope, contract.clearStore, async request => {
    const { params, principal } = request
    requireScope(principal, params.scope)
    await audited(databaseFor(principal.tenant), request, { target: params.scope }, tx =>
      clearScope(tx, { tenant: principal.tenant, ...params }),
    )
    return null
  })

  async function change(
    request: RequestOf<typeof contract.putStored | typeof contract.patchStored>,
    reply: FastifyReply,
    newValue: (stored: Json | undefined) => Json,
  ): Promise<contract.StoredValue> {
    const { params, principal } = request
    requireScope(principal, params.scope)
    const accepts = conditionsOf(request)
    const change = givenKey(request)
    const place = { tenant: principal.tenant, ...params }
    const { stored, isNew } = await audited(databaseFor(principal.tenant), request, { target: targetOf(params) }, tx =>
      changeValue(tx, place, { newValue, accepts, change, maxBytes: config.maxStoreBytes }),
    )
    reply.header('etag', etagOf(stored.version)).status(isNew ? 201 : 200)
    // A patch would return what the caller has not sent.
    return mayRead(principal) ? stored : { ...stored, value: null }
  }
}

function requireScope(principal: Principal, scope: contract.StoreScope): void {
  const agent = scope.startsWith('agent:') ? scope.slice('agent:'.length) : null
  if (!mayUse(principal, agent))
    throw new RivuletError('forbidden', 'This key is limited to agents, and may use only their scopes of the store')
}

function targetOf({ scope, key }: { scope: string; key: string }): string {
  return `${scope}/${key}`
}

function noValue(): RivuletError {
  return new RivuletError('not_found', 'There is no value under this key')
}
