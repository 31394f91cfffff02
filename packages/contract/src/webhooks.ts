/** The webhooks of a tenant and their deliveries. */
import {
  changedWebhookResponse,
  changeWebhookBody,
  createWebhookBody,
  deliveryResponse,
  deliverySchema,
  idSchema,
  listDeliveriesQuery,
  listWebhooksQuery,
  newWebhookResponse,
  webhookResponse,
  webhookSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, pageOf, route } from './route.ts'

const tag = 'webhooks'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const
const params = z.object({ id: idSchema })

export const createWebhook = route('POST /v1/webhooks', {
  ...writing,
  echoes: 201,
  body: createWebhookBody,
  returns: { 201: newWebhookResponse },
  idempotencyKey: 'rejected',
  audited: 'webhook.created',
  errors: ['quota_exceeded'],
  doc: 'Creates a webhook and returns its secret, once',
  note: 'The secret signs the deliveries, and is in no other response',
})

export const listWebhooks = route('GET /v1/webhooks', {
  ...reading,
  query: listWebhooksQuery,
  returns: { 200: pageOf(webhookSchema) },
  doc: 'Lists webhooks, the oldest first',
})

export const getWebhook = route('GET /v1/webhooks/:id', {
  ...reading,
  params,
  returns: { 200: webhookResponse },
  errors: ['not_found'],
  doc: 'Returns a webhook',
})

export const changeWebhook = route('PATCH /v1/webhooks/:id', {
  ...writing,
  params,
  body: changeWebhookBody,
  returns: { 200: changedWebhookResponse },
  audited: 'webhook.changed',
  errors: ['not_found'],
  doc: 'Changes a webhook, and returns its new secret if the request changed it',
})

export const deleteWebhook = route('DELETE /v1/webhooks/:id', {
  ...writing,
  params,
  returns: { 204: nothing },
  audited: 'webhook.deleted',
  errors: ['not_found'],
  doc: 'Deletes a webhook and its deliveries',
})

export const listDeliveries = route('GET /v1/webhooks/:id/deliveries', {
  ...reading,
  params,
  query: listDeliveriesQuery,
  returns: { 200: pageOf(deliverySchema) },
  errors: ['not_found'],
  doc: 'Lists the deliveries of a webhook, the newest first',
})

export const retryDelivery = route('POST /v1/webhooks/:id/deliveries/:delivery/retry', {
  ...writing,
  params: params.extend({ delivery: idSchema }),
  returns: { 202: deliveryResponse },
  idempotencyKey: 'kept',
  audited: 'webhook.retried',
  errors: ['not_found'],
  doc: 'Sends a delivery again, now',
})
