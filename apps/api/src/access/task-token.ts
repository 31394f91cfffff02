/**
 * Tokens for one task, for whoever must not have a key: a browser. Signed, never stored, short-lived; what they say can be read by anybody and
 * changed by nobody. A token is good only as long as the key that it was signed for.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type TokenRight, tokenRightSchema } from '@rivulet/protocol'
import { z } from 'zod'

export const tokenPrefix = 'rvt_'
const tokenShape = new RegExp(`^${tokenPrefix}([\\w-]{1,2000})\\.([\\w-]{43})$`)

const claimsSchema = z.object({
  tenant: z.string(),
  task: z.string(),
  can: z.array(tokenRightSchema),
  /** The key that it was signed for; null where none is asked for. */
  key: z.string().nullable(),
  /** Seconds since 1970. */
  issuedAt: z.int(),
  expiresAt: z.int(),
})

export type TokenClaims = z.output<typeof claimsSchema>

export type TokenWish = {
  tenant: string
  task: string
  can: readonly TokenRight[]
  key: string | null
  ttlSeconds: number
  /** It does not outlive its key. */
  until: Date | null
}

export type TaskTokens = {
  sign(wish: TokenWish): { token: string; expiresAt: string }
  /** Null for one that is not ours, or whose time is up. */
  verify(token: string): TokenClaims | null
}

/** @param secret of this installation, the same in every process; without one, tokens are good in this process only. */
export function createTaskTokens(secret: string | undefined, now: () => number = Date.now): TaskTokens {
  const signingKey = createHmac('sha256', secret ?? randomBytes(32))
    .update('task tokens')
    .digest()
  return { sign, verify }

  function sign({ tenant, task, can, key, ttlSeconds, until }: TokenWish): { token: string; expiresAt: string } {
    const issuedAt = Math.floor(now() / 1_000)
    const expiresAt = Math.min(issuedAt + ttlSeconds, until ? Math.floor(until.getTime() / 1_000) : Number.POSITIVE_INFINITY)
    const claims: TokenClaims = { tenant, task, can: [...can], key, issuedAt, expiresAt }
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
    return {
      token: `${tokenPrefix}${payload}.${signatureOf(payload).toString('base64url')}`,
      expiresAt: new Date(expiresAt * 1_000).toISOString(),
    }
  }

  function verify(token: string): TokenClaims | null {
    const [, payload = '', signature = ''] = tokenShape.exec(token) ?? []
    const given = Buffer.from(signature, 'base64url')
    const expected = signatureOf(payload)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null
    const { data } = claimsSchema.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
    return data && data.expiresAt * 1_000 > now() ? data : null
  }

  function signatureOf(payload: string): Buffer {
    return createHmac('sha256', signingKey).update(payload).digest()
  }
}
