/** Manages the webhooks of a tenant, and shows their deliveries. */

import type { Webhook } from '@rivulet/contract/webhooks'
import * as contract from '@rivulet/contract/webhooks'
import { type Json, type JsonObject, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { mayUse, type Principal } from '../../access/principal.ts'
import { requirePublicHost } from '../../feed/private-addresses.ts'
import { createWebhookSecret } from '../../feed/webhook-signature.ts'
import { listDeliveries, retryDelivery, toDelivery } from '../../store/feed/deliveries.ts'
import { deleteWebhook, findWebhook, insertWebhook, listWebhooks, updateWebhook, type WebhookRow } from '../../store/feed/webhooks.ts'
import { createAudit } from '../requests/audited.ts'
import { respondOnce, sendResponse } from '../requests/idempotent.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function webhookRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, config, vault } = services
  const { audited, note } = createAudit(services)
  const { allowPrivate, perTenant } = config.webhooks

  serve(scope, contract.createWebhook, async (request, reply) => {
    const { tenant } = request.principal
    requireOwnAgent(request.principal, request.body.agent ?? null)
    const { url, events, agent = null, secret = createWebhookSecret() } = request.body
    if (!allowPrivate) requirePublicHost(url, '/url')
    const wanted = { url, events: [...new Set(events)], agent, secret: vault.sealText(tenant, secret) }
    const row = await databaseFor(tenant).transaction(async tx => {
      const inserted = await insertWebhook(tx, tenant, wanted, perTenant)
      if (inserted) await note(request, { target: inserted.id, details: detailsOf(inserted) })(tx)
      return inserted
    })
    if (!row) throw new RivuletError('quota_exceeded', `A tenant may have at most ${perTenant} webhooks (MAX_WEBHOOKS_PER_TENANT)`)
    reply.header('cache-control', 'no-store')
    return { webhook: toWebhook(row), secret }
  })

  serve(scope, contract.listWebhooks, async ({ query, principal }) => {
    const rows = await listWebhooks(databaseFor(principal), principal.tenant, { ...query, limit: query.limit + 1 })
    return pageOf(rows, query.limit, toWebhook)
  })

  serve(scope, contract.getWebhook, async ({ params: { id }, principal }) => ({
    webhook: toWebhook(await requireWebhook(principal, id)),
  }))

  serve(scope, contract.changeWebhook, async (request, reply) => {
    const { body, principal } = request
    const { id } = request.params
    const { tenant } = principal
    if (body.agent !== undefined) requireOwnAgent(principal, body.agent)
    if (body.url !== undefined && !allowPrivate) requirePublicHost(body.url, '/url')
    const secret = body.secret === true ? createWebhookSecret() : body.secret
    const sealed = secret === undefined ? undefined : vault.sealText(tenant, secret)
    const row = await databaseFor(tenant).transaction(async tx => {
      const updated = await updateWebhook(tx, tenant, id, { ...body, secret: sealed })
      if (!updated) throw noWebhook()
      const details = { ...detailsOf(updated), ...(sealed !== undefined && { secret: 'replaced' }) }
      await note(request, { target: id, details })(tx)
      return updated
    })
    reply.header('cache-control', 'no-store')
    return { webhook: toWebhook(row), ...(secret !== undefined && { secret }) }
  })

  serve(scope, contract.deleteWebhook, async request => {
    const { id } = request.params
    const { tenant } = request.principal
    await audited(databaseFor(tenant), request, { target: id }, async tx => {
      if (!(await deleteWebhook(tx, tenant, id))) throw noWebhook()
    })
    return null
  })

  serve(scope, contract.listDeliveries, async ({ params: { id }, query, principal }) => {
    await requireWebhook(principal, id)
    const rows = await listDeliveries(databaseFor(principal), principal.tenant, id, { ...query, limit: query.limit + 1 })
    return pageOf(rows, query.limit, toDelivery)
  })

  serve(scope, contract.retryDelivery, async (request, reply) => {
    const { id, delivery } = request.params
    const { tenant } = request.principal
    await requireWebhook(request.principal, id)
    const response = await respondOnce(databaseFor(tenant), request, async tx => {
      const row = await retryDelivery(tx, tenant, id, delivery)
      if (!row) throw new RivuletError('not_found', 'No such delivery of this webhook')
      await note(request, { target: id, details: { delivery } })(tx)
      return { status: 202, body: { delivery: toDelivery(row) } as Json }
    })
    return sendResponse(reply, response)
  })

  async function requireWebhook(principal: Principal, id: string): Promise<WebhookRow> {
    const row = await findWebhook(databaseFor(principal), principal.tenant, id)
    if (!row) throw noWebhook()
    return row
  }
}

/** The address without its path and query, which may have a secret of the receiver. */
function detailsOf({ url, agent, status }: WebhookRow): JsonObject {
  return { origin: new URL(url).origin, status, ...(agent !== null && { agent }) }
}

/** A webhook of all agents would tell a key that is limited to some about the others. */
function requireOwnAgent(principal: Principal, agent: string | null): void {
  if (!mayUse(principal, agent))
    throw new RivuletError('forbidden', `This key is limited to agents: agent must be one of ${principal.agents?.join(', ')}`)
}

function noWebhook(): RivuletError {
  return new RivuletError('not_found', 'No such webhook')
}

function pageOf<R extends { id: string }, T>(rows: readonly R[], limit: number, toEntity: (row: R) => T) {
  const shown = rows.slice(0, limit)
  return { data: shown.map(toEntity), nextCursor: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
}

function toWebhook({ id, url, events, agent, status, createdAt, oldSecretUntil }: WebhookRow): Webhook {
  return {
    ...{ id, url, events },
    ...(agent !== null && { agent }),
    status,
    createdAt: createdAt.toISOString(),
    ...(oldSecretUntil !== null && { oldSecretUntil: oldSecretUntil.toISOString() }),
  }
}
