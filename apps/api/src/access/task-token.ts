/**
 * Tokens for one task, for callers that must not have a key: browsers. A token is signed, never stored and short-lived; its holder can read but
 * not change it. It is valid only as long as the key that created it.
 *
 * A token that a key creates begins a session. Streams renew it until the session ends, an hour after it began; a renewed token may only read.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { TokenRight } from '@rivulet/contract/scopes'
import { maxTokenSeconds, RivuletError } from '@rivulet/protocol'
import { rootKeyId } from './principal.ts'
import { claimsSchema, type TokenClaims } from './token-claims.ts'
import type { SigningKeys } from './token-signing.ts'

export const tokenPrefix = 'rvt_'
const tokenShape = new RegExp(`^${tokenPrefix}([\\w-]{1,4000})\\.([\\w-]{43})$`)

export type TokenRequest = Pick<TokenClaims, 'tenant' | 'task' | 'key' | 'subject' | 'startedAt' | 'wait'> & {
  can: readonly TokenRight[]
  ttlSeconds: number
  /** It does not outlive its key. */
  until: Date | null
}

/** `expiresAt` is ISO 8601. */
type SignedToken = { token: string; expiresAt: string; claims: TokenClaims }

export type TaskTokens = {
  /** The first token of a session. */
  issue(request: TokenRequest): SignedToken
  /** The next one of the same session: for as long again, and to read with. */
  renew(claims: TokenClaims): SignedToken
  /** Null for one that is not ours, or whose time is up. */
  verify(token: string): TokenClaims | null
}

/** @param signingKeys of this installation, the same in every process; null until they are known. */
export function createTaskTokens(signingKeys: () => SigningKeys | null, now: () => number = Date.now): TaskTokens {
  return { issue, renew, verify }

  function issue({ can, ttlSeconds, until, ...request }: TokenRequest): SignedToken {
    const issuedAt = secondsNow()
    const endsAt = Math.min(issuedAt + maxTokenSeconds, until ? Math.floor(until.getTime() / 1_000) : Number.POSITIVE_INFINITY)
    const session = randomBytes(12).toString('base64url')
    return sign({ ...request, can: [...can], session, issuedAt, expiresAt: Math.min(issuedAt + ttlSeconds, endsAt), endsAt })
  }

  function renew(claims: TokenClaims): SignedToken {
    const issuedAt = secondsNow()
    const ttlSeconds = claims.expiresAt - claims.issuedAt
    return sign({ ...claims, can: ['read'], issuedAt, expiresAt: Math.min(issuedAt + ttlSeconds, claims.endsAt) })
  }

  function sign(claims: TokenClaims): SignedToken {
    const keys = signingKeys()
    if (!keys) throw new RivuletError('dependency_unavailable', 'This process is starting; retry')
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
    const signature = signatureOf(payload, keys[signerOf(claims)][0])
    return { token: `${tokenPrefix}${payload}.${signature}`, expiresAt: new Date(claims.expiresAt * 1_000).toISOString(), claims }
  }

  function verify(token: string): TokenClaims | null {
    const keys = signingKeys()
    const [, payload = '', signature = ''] = tokenShape.exec(token) ?? []
    const signer = keys && signers.find(name => keys[name].some(key => isSame(signature, signatureOf(payload, key))))
    if (!signer) return null
    const { data } = claimsSchema.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
    return data && signerOf(data) === signer && data.expiresAt * 1_000 > now() ? data : null
  }

  function secondsNow(): number {
    return Math.floor(now() / 1_000)
  }
}

const signers = ['root', 'stored'] as const satisfies (keyof SigningKeys)[]

function signerOf({ key }: TokenClaims): keyof SigningKeys {
  return key === rootKeyId ? 'root' : 'stored'
}

function signatureOf(payload: string, key: Buffer): string {
  return createHmac('sha256', key).update(payload).digest('base64url')
}

/** Compares the texts, because the last letter of base64 has bits that no byte needs: the same bytes have four spellings. */
function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
