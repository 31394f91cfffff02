/** Manages webhooks: addresses that the server calls when tasks and turns change. */
import type { ChangedWebhook, ChangeWebhookInput, CreateWebhookInput, Delivery, NewWebhook, Webhook } from '@rivulet/contract/webhooks'
import type { CallOptions, Http } from './http/http.ts'
import { pathOf } from './http/path-of.ts'
import { type Page, readField, readJson, readNothing, readPage, toEntity, toSecret } from './http/responses.ts'

export type WebhookQuery = { limit?: number | undefined; cursor?: string | undefined }
export type DeliveryQuery = WebhookQuery & { status?: Delivery['status'] | undefined }

export type WebhookCalls = {
  /** `secret` signs the deliveries. The API returns it once, so the client does not retry this call. */
  create(body: CreateWebhookInput, options?: CallOptions): Promise<NewWebhook>
  /** Oldest first. */
  list(query?: WebhookQuery, options?: CallOptions): Promise<Page<Webhook>>
  get(id: string, options?: CallOptions): Promise<Webhook>
  /** With `secret`, a rotation: for a day, deliveries are signed with both secrets. Not retried either. */
  change(id: string, body: ChangeWebhookInput, options?: CallOptions): Promise<ChangedWebhook>
  remove(id: string, options?: CallOptions): Promise<void>
  /** Newest first. */
  deliveries(id: string, query?: DeliveryQuery, options?: CallOptions): Promise<Page<Delivery>>
  /** Sends a delivery again, now. */
  retry(id: string, delivery: string, options?: CallOptions): Promise<Delivery>
}

export function createWebhookCalls({ call }: Http): WebhookCalls {
  const once = { idempotencyKey: null, retries: 0 } as const
  const path = '/v1/webhooks'
  return {
    create: (body, own) => call({ method: 'POST', ...once, path, body, ...own, read: readJson(toNew) }),
    list: (query, own) => call({ path, query, ...own, read: readPage<Webhook>('webhook') }),
    get: (id, own) => call({ path: pathOf('webhooks', id), ...own, read: readField<Webhook>('webhook') }),
    change: (id, body, own) => call({ method: 'PATCH', ...once, path: pathOf('webhooks', id), body, ...own, read: readJson(toChanged) }),
    remove: (id, own) => call({ method: 'DELETE', path: pathOf('webhooks', id), ...own, read: readNothing }),
    deliveries: (id, query, own) =>
      call({ path: `${pathOf('webhooks', id)}/deliveries`, query, ...own, read: readPage<Delivery>('report') }),
    retry: (id, delivery, own) =>
      call({
        method: 'POST',
        path: `${pathOf('webhooks', id)}/deliveries/${encodeURIComponent(delivery)}/retry`,
        ...own,
        read: readField<Delivery>('report', 'delivery'),
      }),
  }
}

function toChanged({ webhook, secret }: Record<string, unknown>): ChangedWebhook {
  return { webhook: toEntity<Webhook>(webhook, 'webhook'), ...(typeof secret === 'string' && { secret }) }
}

function toNew(body: Record<string, unknown>): NewWebhook {
  return { ...toChanged(body), secret: toSecret(body.secret) }
}
