/** The caller of a request and its permissions: a key, or a token that a key signed for one task. */

import { type Scope, scopes, type TokenRight } from '@rivulet/contract/scopes'
import { RivuletError } from '@rivulet/protocol'
import type { Reach } from '../store/access/reach.ts'
import { defaultTenant, everyTenant } from '../store/connection/tenant.ts'
import type { TokenClaims } from './token-claims.ts'

export type Principal = {
  tenant: string
  scopes: readonly Scope[]
  /** The key of the request; null if the API requires no keys. */
  key: string | null
  /** When that key's time is up. */
  expiresAt: Date | null
  /** The same by the monotonic clock of this process, from how long Postgres says that the key still has. */
  liveUntil?: number
  /** The installation's own, from the environment: the limits of a key do not hold for it. */
  isRoot: boolean
  /** For the scopes `worker` and `metrics`: whether the key is for all tenants, or for its own. */
  allTenants?: boolean
  /** The agents that the key is limited to, for its caller and for a worker; null or absent: none. */
  agents?: readonly string[] | null
  /** For the holder of a token: what it says. */
  token?: TokenClaims
}

/** The ids of the keys of the environment. They stand in tokens and logs, so they say nothing about the keys themselves. */
export const rootKeyId = 'root'
export const workerKeyId = 'root-worker'

/** The caller where the API asks for no key. */
export const localCaller: Principal = { tenant: defaultTenant, scopes, key: null, expiresAt: null, isRoot: true, allTenants: true }

/** Whether a key may use an agent. For one that it may not use, callers return the same as for an agent that does not exist. */
export function mayUse({ agents = null }: Pick<Principal, 'agents'>, agent: string | null): boolean {
  return agents === null || (agent !== null && agents.includes(agent))
}

/** A token is limited even if the root key signed it, because a browser holds it. */
export function isLimited({ isRoot, token }: Principal): boolean {
  return !isRoot || token !== undefined
}

/** For a right that a token needs beside that of the route. A right `answer` for one wait is not one for all that the turn asks. */
export function requireRight({ token }: Pick<Principal, 'token'>, right: TokenRight): void {
  if (token && (!token.can.includes(right) || (right === 'answer' && token.wait !== undefined)))
    throw new RivuletError('forbidden', `This token does not have the right ${right}`)
}

/** Whether a caller may see what is in a task, and not only change it. */
export function mayRead(principal: Principal): boolean {
  return holds(principal, 'tasks:read') && (principal.token?.can.includes('read') ?? true)
}

/**
 * Whose Idempotency-Keys those of a caller are: the holder of a token can neither occupy a key of its back end, nor get the response under it. Tokens of one
 * task and subject share theirs, because a page repeats a request with the token that follows the one it had.
 */
export function namespaceOf({ key, token }: Principal): string {
  if (!token) return `key:${key ?? 'none'}`
  return token.subject === null ? `task:${token.task}` : `task:${token.task}:${token.subject}`
}

export function holds(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope) || (scope !== 'worker' && principal.scopes.includes('admin'))
}

/** Whether a worker is the installation's own, because its key is for all tenants. */
export function isInstallations({ isRoot, allTenants = false }: Principal): boolean {
  return isRoot || allTenants
}

/** The turns that a worker may touch. */
export function reachOf({ tenant, allTenants, agents = null }: Principal): Reach {
  return { tenant: allTenants ? everyTenant : tenant, agents }
}
