/** The guard without a server: which callers may use a route, and which routes cannot be registered. */

import { type Access, route } from '@rivulet/contract/route'
import type { Scope } from '@rivulet/contract/scopes'
import type { RivuletError } from '@rivulet/protocol'
import fastify, { type RouteOptions } from 'fastify'
import { describe, expect, test } from 'vitest'
import { handleErrors } from '../http/errors.ts'
import { guardRoutes, isGuarded } from './guard.ts'
import type { KeyCheck } from './key-check.ts'
import type { Principal } from './principal.ts'
import { createTaskTokens, type TokenRequest } from './task-token.ts'
import { createTokenBuckets } from './token-bucket.ts'
import type { TokenRevocations } from './token-revocations.ts'

const task = '0198c0de-0000-7000-8000-000000000001'
const tokens = createTaskTokens(() => ({ root: [Buffer.from('root')], stored: [Buffer.from('stored')] }))
/** Of subjects that are named so. */
const revocations = { isRevoked: async ({ subject }) => subject === 'revoked' } as Pick<TokenRevocations, 'isRevoked'> as TokenRevocations
const sign = (request: Partial<TokenRequest> = {}) =>
  tokens.issue({
    tenant: 'acme',
    task,
    can: ['read'],
    key: 'tasks:read',
    subject: null,
    startedAt: 0,
    ttlSeconds: 60,
    until: null,
    ...request,
  }).token

const isWithin = async () => true
const ratesOf = (burst: number, tenantBurst: number) =>
  createTokenBuckets({ key: { perSecond: 0.01, burst }, tenant: { perSecond: 0.02, burst: tenantBurst } })

/** Its keys are the names of their scopes. */
function serve(route: Partial<RouteOptions>, { burst = 100, tenantBurst = 100, isOpen = false, onLimit = (_: string) => {} } = {}) {
  const app = fastify()
  handleErrors(app)
  const principalOf = (text: string): Principal | null =>
    text.includes(':') || text === 'worker' ? { tenant: 'acme', scopes: [text as Scope], key: text, expiresAt: null, isRoot: false } : null
  const keys: KeyCheck = {
    check: async text => principalOf(text),
    holder: async id => principalOf(id),
    stillLive: async ids => new Set(ids),
    forget: () => {},
  }
  app.register(async scope => {
    guardRoutes(scope, { keys, tokens, revocations, rates: ratesOf(burst, tenantBurst), onLimit, isWithin }, isOpen)
    scope.route({ method: 'GET', url: '/:id', handler: async ({ principal }) => principal.tenant, ...route })
  })
  return app
}

const configOf = (access: Access) => ({ contract: route('GET /:id', { tag: 'tasks', returns: {}, doc: 'Returns the tenant', ...access }) })

const ask = (app: ReturnType<typeof serve>, bearer: string, url = `/${task}`) =>
  app.inject({ url, headers: { authorization: `Bearer ${bearer}` } }).then(({ statusCode }) => statusCode)

describe('a route cannot be added', () => {
  test('that does not declare its access', async () => {
    await expect(serve({}).ready()).rejects.toThrow('GET /:id does not declare its access')
  })

  test('that is guarded, and not in the description of the API', async () => {
    const hidden = serve({ config: configOf({ scope: 'admin' }), schema: { hide: true } })
    await expect(hidden.ready()).rejects.toThrow('hidden')
  })
})

test('a scope knows whether it is guarded, and so do those inside it', async () => {
  const app = fastify()
  await app.register(async scope => {
    expect(isGuarded(scope)).toBe(false)
    guardRoutes(scope, { keys: {} as KeyCheck, tokens, revocations, rates: ratesOf(1, 1), onLimit: () => {}, isWithin }, true)
    await scope.register(async inner => expect(isGuarded(inner)).toBe(true))
  })
  expect(isGuarded(app)).toBe(false)
})

test('a token counts for its task by capitals too, only while its key would do, and until it is revoked', async () => {
  const app = serve({ config: configOf({ scope: 'tasks:read', token: 'read' }) })
  expect(await ask(app, sign(), `/${task.toUpperCase()}`)).toBe(200)
  expect(await ask(app, sign(), `/{${task}}`)).toBe(403)
  expect(await ask(app, sign({ key: 'tasks:write' }))).toBe(403)
  expect(await ask(app, sign({ key: 'gone' }))).toBe(401)
  expect(await ask(app, sign({ tenant: 'rival' }))).toBe(401)
  expect([await ask(app, sign({ subject: 'anna' })), await ask(app, sign({ subject: 'revoked' }))]).toEqual([200, 401])
})

test('each key, and each task of a key’s tokens, has a rate of its own; the keys of workers have none', async () => {
  const app = serve({ config: configOf({ scope: 'tasks:read', token: 'read' }) }, { burst: 2 })
  const token = sign()
  const replies = []
  for (const bearer of ['tasks:read', 'tasks:read', 'tasks:read', token, token, token, 'tasks:write']) replies.push(await ask(app, bearer))
  expect(replies).toEqual([200, 200, 429, 200, 200, 429, 403])
  const internal = serve({ config: configOf({ scope: 'worker' }) }, { burst: 1 })
  for (let i = 0; i < 5; i += 1) expect(await ask(internal, 'worker')).toBe(200)
})

test('a tenant has a rate for all its keys and tokens, and the error names it', async () => {
  const rejections: string[] = []
  const app = serve(
    { config: configOf({ scope: 'tasks:read', token: 'read' }) },
    { tenantBurst: 2, onLimit: setting => rejections.push(setting) },
  )
  expect([await ask(app, 'tasks:read'), await ask(app, sign()), await ask(app, 'tasks:write')]).toEqual([200, 200, 429])
  const refused = await app.inject({ url: `/${task}`, headers: { authorization: `Bearer ${sign()}` } })
  expect([refused.statusCode, refused.headers['retry-after'], refused.json<{ error: RivuletError }>().error]).toMatchObject([
    429,
    '50',
    { code: 'rate_limited', message: 'A tenant may send at most 0.02 requests per second (RATE_LIMIT_TENANT_PER_SECOND)' },
  ])
  expect(rejections).toEqual(['RATE_LIMIT_TENANT_PER_SECOND', 'RATE_LIMIT_TENANT_PER_SECOND'])
})

test.each([
  ['127.0.0.1:4000', 200],
  ['localhost', 200],
  ['[::1]:4000', 200],
  ['app.localhost:4000', 200],
  ['devbox', 403],
  ['evil', 403],
  ['evil:4000', 403],
  ['evil.example', 403],
  ['localhost.evil.example:4000', 403],
])('without keys, a request for %s gets %d', async (host, status) => {
  const app = serve({ config: configOf({ scope: 'tasks:read' }) }, { isOpen: true })
  const { statusCode, body } = await app.inject({ url: '/any', headers: { host } })
  expect([statusCode, status === 200 ? body : (JSON.parse(body) as { error: RivuletError }).error.code]).toEqual([
    status,
    status === 200 ? 'default' : 'forbidden',
  ])
})

test.each(['x-forwarded-host', 'forwarded', 'x-forwarded-for'])(
  'what a caller says in %s of where it comes from is not believed',
  async name => {
    const app = serve({ config: configOf({ scope: 'tasks:read' }) }, { isOpen: true })
    const said = { [name]: name === 'forwarded' ? 'for=127.0.0.1;host=localhost' : 'localhost' }
    const elsewhere = { [name]: name === 'forwarded' ? 'for=6.6.6.6;host=evil.example' : 'evil.example' }
    expect((await app.inject({ url: '/any', headers: { host: 'evil.example', ...said } })).statusCode).toBe(403)
    expect((await app.inject({ url: '/any', headers: { host: 'localhost', ...elsewhere } })).statusCode).toBe(200)
  },
)
