/** For the receiver of webhooks: checks that a request comes from the API, by the specification of Standard Webhooks. It needs no Node API. */
import type { FeedEntryType } from '@rivulet/contract/feed'
import { type JsonObject, RivuletError } from '@rivulet/protocol'

export type WebhookEvent = { type: FeedEntryType; timestamp: string; data: JsonObject }

/** Those of a `Request`, or of Node and its frameworks. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

export type VerifyOptions = {
  /** How far the clocks of sender and receiver may differ; an older request may be a copy that is sent again. Default 300. */
  toleranceSeconds?: number
  /** Default: the time of this machine. */
  now?: Date
}

/**
 * Returns the event of a delivery, or throws `unauthorized`.
 *
 * @param secret the secret of the webhook; during a rotation both
 * @param body as it was received, because other spaces give another signature
 */
export async function verifyWebhook(
  secret: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array<ArrayBuffer>,
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const [id, sentAt, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => headerOf(headers, name))
  if (!id || !sentAt || !signatures)
    throw unauthorized('The request has no signature: webhook-id, webhook-timestamp and webhook-signature are needed')
  if (!(Math.abs(now.getTime() / 1_000 - Number(sentAt)) <= toleranceSeconds))
    throw unauthorized(`The request was signed more than ${toleranceSeconds} s ago, or by another clock`)
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  const signed = new TextEncoder().encode(`${id}.${sentAt}.${text}`)
  const keys = await Promise.all([secret].flat().map(importKey))
  const given = signatures.split(' ').flatMap(signature => (signature.startsWith('v1,') ? (bytesOf(signature.slice(3)) ?? []) : []))
  for (const key of keys)
    for (const signature of given) if (await crypto.subtle.verify('HMAC', key, signature, signed)) return JSON.parse(text)
  throw unauthorized('No signature of the request is by this secret')
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const [, value] = Object.entries(headers).find(([own]) => own.toLowerCase() === name) ?? []
  return typeof value === 'string' ? value : value?.[0]
}

async function importKey(secret: string) {
  const bytes = secret.startsWith('whsec_') ? bytesOf(secret.slice('whsec_'.length)) : null
  if (!bytes) throw new RivuletError('bad_call', 'A secret of a webhook is whsec_ and base64')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/** Null for a text that is no base64. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  } catch {
    return null
  }
}

function unauthorized(message: string): RivuletError {
  return new RivuletError('unauthorized', message)
}
