/** The requests that manage webhooks, and their responses. A secret is in the response that creates it, and in no other. */
import { z } from 'zod'
import { feedEntryTypeSchema } from '../entities/feed-entry.ts'
import { agentNameSchema, idSchema } from '../entities/ids.ts'
import {
  deliverySchema,
  deliveryStatuses,
  webhookSecretSchema as secret,
  webhookUrlSchema as url,
  webhookSchema,
} from '../entities/webhook.ts'
import { pageLimit } from './requests.ts'

const events = z.array(feedEntryTypeSchema).min(1).max(feedEntryTypeSchema.options.length)

export const createWebhookBody = z.strictObject({ url, events, agent: agentNameSchema.optional(), secret: secret.optional() })

export const changeWebhookBody = z.strictObject({
  url: url.optional(),
  events: events.optional(),
  /** Null: all agents. */
  agent: agentNameSchema.nullable().optional(),
  status: webhookSchema.shape.status.optional(),
  /** A new secret; `true`: one that the server makes. The server signs with both for a day. */
  secret: z.union([z.literal(true), secret]).optional(),
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

export type CreateWebhook = z.output<typeof createWebhookBody>
export type ChangeWebhook = z.output<typeof changeWebhookBody>
export type ListWebhooks = z.output<typeof listWebhooksQuery>
export type ListDeliveries = z.output<typeof listDeliveriesQuery>
export type NewWebhook = z.output<typeof newWebhookResponse>
export type ChangedWebhook = z.output<typeof changedWebhookResponse>

export type CreateWebhookInput = z.input<typeof createWebhookBody>
export type ChangeWebhookInput = z.input<typeof changeWebhookBody>
