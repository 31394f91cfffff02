/** For the receiver of webhooks: `verifyWebhook`. Apart from the client, because a page receives none. */
export { type VerifyOptions, verifyWebhook, type WebhookEvent, type WebhookHeaders } from './verify-webhook.ts'
