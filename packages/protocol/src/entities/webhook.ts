/** A webhook: an address that the server calls for entries of the feed. And a delivery: one entry on its way to one address. */
import { z } from 'zod'
import { feedEntryTypeSchema } from './feed-entry.ts'
import { agentNameSchema, idSchema, taskIdSchema } from './ids.ts'

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

export type Webhook = z.output<typeof webhookSchema>
export type Delivery = z.output<typeof deliverySchema>
export type OnEnd = z.output<typeof onEndSchema>
