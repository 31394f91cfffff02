/**
 * Decides whether a caller may call a route. Every route of a guarded scope must declare its access; a route without it cannot be registered.
 *
 * A missing key and every kind of invalid key get the same 401. A valid key without the scope gets 403, which does not reveal whether the task
 * exists. A key that is limited to agents gets 404 for a path that names a task or an agent of others, whatever the route does.
 */
import type { Route, Access as RouteAccess } from '@rivulet/contract/route'
import { RivuletError, taskIdSchema, waitIdSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { OwnedKind } from '../store/access/reach.ts'
import { taskNotFound } from '../store/connection/tenant.ts'
import { hostNameOf, isOfThisMachine } from './allowed-hosts.ts'
import type { KeyCheck } from './key-check.ts'
import { holds, isInstallations, isLimited, localCaller, mayUse, type Principal, requireRight } from './principal.ts'
import { type TaskTokens, tokenPrefix } from './task-token.ts'
import type { BucketName, RateKind, TokenBuckets } from './token-bucket.ts'
import type { TokenRevocations } from './token-revocations.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The row of the route. */
    contract?: Route
  }
  interface FastifyRequest {
    /** Set for every request that a guarded route gets to see. */
    principal: Principal
  }
}

export type Access = {
  keys: KeyCheck
  tokens: TaskTokens
  revocations: TokenRevocations
  /** Of each key, each token's task, and each tenant. */
  rates: TokenBuckets
  /** A limit rejected a request: the setting's name. */
  onLimit(setting: string): void
  /** Whether a key that is limited to agents may know of this row. */
  isWithin(principal: Principal, kind: OwnedKind, id: string): Promise<boolean>
}

/** @param isOpen no key is asked for: local development. */
export function guardRoutes(
  scope: FastifyInstance,
  { keys, tokens, revocations, rates, onLimit, isWithin }: Access,
  isOpen: boolean,
): void {
  scope.decorate(mark, true)
  scope.decorateRequest('principal')
  scope.addHook('onRoute', ({ method, url, config, schema }) => {
    if (!config?.contract?.scope) throw new Error(`${method} ${url} does not declare its access`)
    if (schema?.hide) throw new Error(`${method} ${url} is guarded, but hidden from the OpenAPI description`)
  })
  scope.addHook('onRequest', async (request, reply) => {
    const access = accessOf(request)
    const principal = isOpen ? local(request) : await identify(request, access)
    if (!principal) {
      reply.header('www-authenticate', 'Bearer')
      throw new RivuletError('unauthorized', 'A valid key is required: Authorization: Bearer <key>')
    }
    // Also for what records a request that is refused below.
    request.principal = principal
    const isWorker = access?.scope === 'worker'
    const isFree = isWorker ? isInstallations(principal) : !isLimited(principal)
    const empty = isFree ? null : rates.take(isWorker ? workerBuckets(principal) : bucketsOf(principal))
    if (empty) {
      const [caller, setting] = limitedBy[empty.kind]
      const who = isWorker ? 'The workers of a tenant' : caller
      onLimit(setting)
      reply.header('retry-after', String(empty.waitSeconds))
      throw new RivuletError('rate_limited', `${who} may send at most ${empty.perSecond} requests per second (${setting})`)
    }
    if (!access || !isAllowed(principal, access, request))
      throw new RivuletError('forbidden', 'This key or token does not have the required scope')
    if (access.tokenAlso) requireRight(principal, access.tokenAlso)
  })
  // After validation, which has normalised the ids.
  scope.addHook('preHandler', async request => {
    const { principal, routeOptions, params } = request
    const access = accessOf(request)
    if (principal.agents && access?.scope !== 'worker') await keepToAgents(principal, routeOptions.url ?? '', params as PathParams, access)
  })

  async function keepToAgents(
    principal: Principal,
    url: string,
    { id = '', agent, model }: PathParams,
    access?: RouteAccess,
  ): Promise<void> {
    const [, kind] = /\/v1\/(tasks|schedules|webhooks|files)\/:id/.exec(url) ?? []
    const named = agent ?? model
    if (access?.scope === 'admin' || access?.scope === 'metrics')
      throw new RivuletError('forbidden', 'A key that is limited to agents cannot administer its tenant')
    if (kind && !(await isWithin(principal, kind as OwnedKind, id)))
      throw kind === 'tasks' ? taskNotFound() : new RivuletError('not_found', `No such ${kind.slice(0, -1)}`)
    if (named !== undefined && !mayUse(principal, named)) throw new RivuletError('not_found', 'No such agent')
    if (!kind && named === undefined && !access?.ofAgents)
      throw new RivuletError('forbidden', 'This key is limited to agents, and this call is not about one')
  }

  async function identify({ headers, query }: FastifyRequest, access: RouteAccess | undefined): Promise<Principal | null> {
    if (headers.authorization === undefined && access?.tokenInQuery) return holderOf(String((query as { token?: unknown }).token ?? ''))
    const [, bearer = ''] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? []
    if (bearer === '') return null
    return bearer.startsWith(tokenPrefix) ? holderOf(bearer) : keys.check(bearer)
  }

  async function holderOf(token: string): Promise<Principal | null> {
    const claims = tokens.verify(token)
    if (!claims?.key) return null
    const [holder, isRevoked] = await Promise.all([keys.holder(claims.key), revocations.isRevoked(claims)])
    return isRevoked || holder?.tenant !== claims.tenant ? null : { ...holder, token: claims }
  }
}

/** Undefined for a path without a route. */
function accessOf({ routeOptions }: FastifyRequest): RouteAccess | undefined {
  const { contract } = routeOptions.config
  return contract && isProtected(contract) ? contract : undefined
}

function isProtected(row: Route): row is Route & RouteAccess {
  return row.scope !== null
}

type PathParams = { id?: string; agent?: string; model?: string }

/** Whether the routes of a scope require a key or a token. */
export function isGuarded(scope: FastifyInstance): boolean {
  return scope.hasDecorator(mark)
}

const mark = 'isGuarded'

/** Without keys, a foreign page could point its own domain at this machine (DNS rebinding). */
function local({ headers: { host } }: FastifyRequest): Principal {
  if (!isOfThisMachine(hostNameOf(host)))
    throw new RivuletError('forbidden', 'An API without keys accepts only the names of this machine in Host')
  return localCaller
}

/** A token opens its own task, as far as its key would. */
function isAllowed(principal: Principal, { scope, token: right, checksTask }: RouteAccess, { params }: FastifyRequest): boolean {
  if (!holds(principal, scope)) return false
  if (!principal.token) return true
  const { id, wait } = params as { id?: unknown; wait?: unknown }
  const { task, can, wait: only } = principal.token
  const held = [right ?? []].flat().filter(one => can.includes(one))
  // A token for one wait is for no other. Its other rights are for the whole task.
  const isOther = only !== undefined && held.every(one => one === 'answer') && waitIdSchema.safeParse(wait).data !== only
  if (checksTask) return held.length > 0
  return held.length > 0 && !isOther && taskIdSchema.safeParse(id).data === task
}

const limitedBy = {
  key: ['A key', 'RATE_LIMIT_PER_SECOND'],
  tenant: ['A tenant', 'RATE_LIMIT_TENANT_PER_SECOND'],
} as const satisfies Record<RateKind, unknown>

/** Apart from the tenant's callers, so that neither uses up the rate of the other. */
function workerBuckets({ tenant }: Principal): BucketName[] {
  return [`tenant workers of ${tenant}`]
}

function bucketsOf({ tenant, key, token }: Principal): BucketName[] {
  return [token ? `key ${key} ${token.task}` : `key ${key}`, `tenant ${tenant}`]
}
