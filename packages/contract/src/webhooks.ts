/** The webhooks of a tenant and their deliveries. */
import { agentNameSchema, idSchema, taskIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { feedEntryTypeSchema } from './feed.ts'
import { nothing, pageOf, route } from './route.ts'
import { pageLimit } from './values.ts'

const time = z.iso.datetime()

export const webhookUrlSchema = z
  .url({ protocol: /^https?$/, error: 'Expected an http or https URL' })
  .max(2_000)
  .regex(/^\w+:\/\/[^/?#@]*([/?#]|$)/, 'Expected a URL without a user name and password')

/** By the specification of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export const webhookSecretSchema = z.string().regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'A secret is whsec_ and 24 to 64 bytes in base64')

/** `onEnd` of a task. */
export const onEndSchema = z.union([
  webhookUrlSchema.transform((url): { url: string; secret?: string | undefined } => ({ url })),
  z.strictObject({ url: webhookUrlSchema, secret: webhookSecretSchema.optional() }),
])

export const webhookSchema = z.object({
  id: idSchema,
  url: z.string(),
  events: z.array(feedEntryTypeSchema),
  agent: agentNameSchema.optional(),
  /** `disabled`: the caller turned it off, or its address returned 410. */
  status: z.enum(['active', 'disabled']),
  createdAt: time,
  /** After a rotation, until when the server also signs with the old secret. */
  oldSecretUntil: time.optional(),
})

export const deliveryStatuses = ['pending', 'delivered', 'failed'] as const

export const deliverySchema = z.object({
  /** The header `webhook-id`: the same for all attempts. */
  id: idSchema,
  type: feedEntryTypeSchema,
  task: taskIdSchema,
  /** `failed`: no attempt succeeded within three days, or the address returned 410. */
  status: z.enum(deliveryStatuses),
  attempts: z.int(),
  /** Of the last attempt: the HTTP status, or why there was none. */
  lastStatus: z.int().optional(),
  lastError: z.string().optional(),
  createdAt: time,
  nextAt: time.optional(),
  deliveredAt: time.optional(),
})

const events = z.array(feedEntryTypeSchema).min(1).max(feedEntryTypeSchema.options.length)
export const createWebhookBody = z.strictObject({
  url: webhookUrlSchema,
  events,
  agent: agentNameSchema.optional(),
  secret: webhookSecretSchema.optional(),
})

export const changeWebhookBody = z.strictObject({
  url: webhookUrlSchema.optional(),
  events: events.optional(),
  /** Null: all agents. */
  agent: agentNameSchema.nullable().optional(),
  status: webhookSchema.shape.status.optional(),
  /** A new secret; `true`: one that the server makes. The server signs with both for a day. */
  secret: z.union([z.literal(true), webhookSecretSchema]).optional(),
})

export const listWebhooksQuery = z.strictObject({ limit: pageLimit, cursor: idSchema.optional() })

export const listDeliveriesQuery = z.strictObject({
  limit: pageLimit,
  cursor: idSchema.optional(),
  status: z.enum(deliveryStatuses).optional(),
})

export const webhookResponse = z.object({ webhook: webhookSchema })
export const newWebhookResponse = z.object({ webhook: webhookSchema, secret: z.string() })
export const changedWebhookResponse = newWebhookResponse.partial({ secret: true })
export const deliveryResponse = z.object({ delivery: deliverySchema })

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

export type Webhook = z.output<typeof webhookSchema>
export type Delivery = z.output<typeof deliverySchema>
export type OnEnd = z.output<typeof onEndSchema>

export type CreateWebhook = z.output<typeof createWebhookBody>
export type ChangeWebhook = z.output<typeof changeWebhookBody>
export type ListWebhooks = z.output<typeof listWebhooksQuery>
export type ListDeliveries = z.output<typeof listDeliveriesQuery>
export type NewWebhook = z.output<typeof newWebhookResponse>
export type ChangedWebhook = z.output<typeof changedWebhookResponse>
export type CreateWebhookInput = z.input<typeof createWebhookBody>
export type ChangeWebhookInput = z.input<typeof changeWebhookBody>
