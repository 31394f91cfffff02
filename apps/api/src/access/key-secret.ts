/**
 * Keys as text: `rvk_<id>_<secret>`. The id finds the row; the secret is 32 random bytes, of which only an HMAC is stored, so neither a copy of
 * the database nor of the pepper alone is enough to use a key.
 */
import { createHmac, randomBytes } from 'node:crypto'

type KeyText = { id: string; secret: string }

export function createKeyText(): KeyText & { text: string } {
  const id = randomBytes(8).toString('hex')
  const secret = randomBytes(32).toString('base64url')
  return { id, secret, text: `rvk_${id}_${secret}` }
}

export function parseKeyText(text: string): KeyText | null {
  const [, id, secret] = /^rvk_([0-9a-f]{16})_([\w-]{43})$/.exec(text) ?? []
  return id !== undefined && secret !== undefined ? { id, secret } : null
}

export function digestOfSecret(pepper: string, secret: string): Buffer {
  return createHmac('sha256', pepper).update(secret).digest()
}
