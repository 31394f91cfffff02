/** Who asks, and what they may do: the holder of a key, or of a token that a key has signed for one task. */
import type { TokenRight } from '@rivulet/protocol'

/** `admin` includes both scopes of tasks; `worker` is for `/internal` and for nothing else. */
export const scopes = ['tasks:read', 'tasks:write', 'admin', 'worker'] as const

export type Scope = (typeof scopes)[number]

export type Principal = {
  tenant: string
  scopes: readonly Scope[]
  /** The key behind the request; null where none is asked for. */
  key: string | null
  /** When that key's time is up. */
  expiresAt: Date | null
  /** The installation's own, from the environment: the limits of a key do not hold for it. */
  isRoot: boolean
  /** For the holder of a token: its task, what may be done to it, and from when until when. */
  token?: { task: string; can: readonly TokenRight[]; issuedAt: Date; expiresAt: Date }
}

/** What a route asks of its caller. A route without `token` takes no tokens. */
export type RouteAccess = {
  scope: Scope
  token?: TokenRight
  /** The token may also come as `?token=`: an EventSource cannot send headers. */
  tokenInQuery?: boolean
}

export const defaultTenant = 'default'

/** Whoever asks, where no key is asked for. */
export const anybody: Principal = { tenant: defaultTenant, scopes, key: null, expiresAt: null, isRoot: true }

/** Whoever holds a token is limited like anybody else: it is a browser, whoever made the token. */
export function isLimited({ isRoot, token }: Principal): boolean {
  return !isRoot || token !== undefined
}

export function holds(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope) || (scope !== 'worker' && principal.scopes.includes('admin'))
}
