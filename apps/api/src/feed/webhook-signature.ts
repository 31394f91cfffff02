/** The headers of a webhook, by the specification of Standard Webhooks. */
import { createHmac, randomBytes } from 'node:crypto'

const prefix = 'whsec_'

export function createWebhookSecret(): string {
  return `${prefix}${randomBytes(32).toString('base64')}`
}

/** @param secrets each gives a signature, so that a receiver may know the old secret or the new one. */
export function webhookHeaders(
  secrets: readonly string[],
  { id, at, body }: { id: string; at: Date; body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000))
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.slice(prefix.length), 'base64')).update(`${id}.${timestamp}.${body}`)
  const signatures = secrets.map(secret => `v1,${sign(secret).digest('base64')}`)
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  }
}
