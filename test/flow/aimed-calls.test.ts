/**
 * Every call that the API has, in every protocol, aimed at what one tenant owns, by callers with few rights: another tenant's key, a key limited to another
 * agent, a key that may only write, a token with one right. None gets a text of the owner that it may not, and none changes what it may not.
 */
import type { TokenRight } from '@rivulet/contract/scopes'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AimedCall, aimedCalls, type Call } from '../support/calls/aimed-calls.ts'
import { errorCodeOf, readDocumentedErrors } from '../support/calls/documented-errors.ts'
import { mark, Owned, type Owner } from '../support/calls/owned.ts'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const root = 'the-root-key-of-this-test'
const rights: TokenRight[] = ['read', 'send', 'cancel', 'answer', 'params', 'rewind']
const calls = Object.entries(aimedCalls)

let platform: Platform
let documented: ReadonlyMap<string, readonly string[]>
let keyring: TestKeyring
let owner: Owner
/** What callers aim at that may not change it: one for all of them. */
let kept: Owned
let before: Record<string, string>
let foreign: string
let limited: string
let limitedAdmin: string
let writer: string
beforeAll(async () => {
  const rates = {
    RATE_LIMIT_PER_SECOND: '100000',
    RATE_LIMIT_BURST: '100000',
    RATE_LIMIT_TENANT_PER_SECOND: '100000',
    RATE_LIMIT_TENANT_BURST: '100000',
  }
  const env = {
    RIVULET_KEY: root,
    KEY_PEPPER: pepper,
    RIVULET_WORKER_KEY: root,
    ...rates,
    MAX_WEBHOOKS_PER_TENANT: '1000',
    MAX_SCHEDULES_PER_TENANT: '1000',
  }
  platform = await startPlatform({ env })
  documented = await readDocumentedErrors(platform.url)
  keyring = openTestKeyring(platform.databaseUrl)
  const keyOf = async (request: Parameters<TestKeyring['create']>[0]) => (await keyring.create(request)).key
  const tasks = ['tasks:read', 'tasks:write'] as const
  owner = { url: platform.url, pg: platform.pg, tenant: 'acme', key: await keyOf({ tenant: 'acme', scopes: [...tasks, 'admin'] }) }
  foreign = await keyOf({ tenant: 'rival', scopes: [...tasks, 'admin'] })
  limited = await keyOf({ tenant: 'acme', scopes: [...tasks], agents: ['echo'] })
  limitedAdmin = await keyOf({ tenant: 'acme', scopes: [...tasks, 'admin'], agents: ['echo'] })
  writer = await keyOf({ tenant: 'acme', scopes: ['tasks:write'] })
  kept = new Owned(owner)
  await Promise.all([
    kept.asking(),
    kept.ended(),
    kept.file(),
    kept.namedFile(),
    kept.schedule(),
    kept.webhook(),
    kept.key(),
    kept.settings(),
    kept.customer(),
    kept.mcpSession(),
  ])
  for (const task of await Promise.all([kept.asking(), kept.ended()]))
    for (const right of rights) tokens.set(`${task.id} ${right}`, await kept.token(task.id, [right]))
  before = await until('nothing changes by itself', async () => {
    const [first, second] = [await kept.digests('rival'), await kept.digests('rival')]
    return JSON.stringify(first) === JSON.stringify(second) && first
  })
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

/** Rows that wait together share one look at the tables, which begins after the calls of each. */
function digestsNow(): Promise<Record<string, string>> {
  nextDigests ??= lastDigests.then(() => {
    nextDigests = undefined
    const digests = kept.digests('rival')
    lastDigests = digests.catch(() => {})
    return digests
  })
  return nextDigests
}
let nextDigests: Promise<Record<string, string>> | undefined
let lastDigests: Promise<unknown> = Promise.resolve()

const tokens = new Map<string, string>()

type Sight = { status: number; text: string }

/** A stream is read until it shows the mark or ends. */
async function ask(name: string, { path, body, headers }: Call, key: string): Promise<Sight> {
  const leaving = new AbortController()
  const response = await fetch(`${platform.url}${path}`, {
    method: name.split(' ')[0] ?? '',
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers, authorization: `Bearer ${key}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: leaving.signal,
  })
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (text.includes(mark)) break
  }
  leaving.abort()
  const errors = documented.get(name.split(' ').slice(0, 2).join(' '))
  if (errors && response.status >= 400) expect(errors, `${name} ${response.status}`).toContain(errorCodeOf(text))
  return { status: response.status, text }
}

test('every call of the API is aimed here: a new route needs a row', async () => {
  const { body } = await createClient(() => platform.url).get<{ paths: Record<string, object> }>('/openapi.json')
  const offered = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
  )
  const aimed = new Set(Object.keys(aimedCalls).map(name => name.split(' ').slice(0, 2).join(' ')))
  // Of workers, worker-keys.test.ts and worker-protocol.test.ts have the routes; two others are public.
  const others = offered.filter(route => !/ \/(internal|worker)\//.test(route) && !['GET /healthz', 'GET /readyz'].includes(route))
  expect([...aimed].sort()).toEqual(others.sort())
})

/** Who reads changes nothing, so all calls that read are aimed at the same. */
const aim = (name: string) => (name.startsWith('GET') ? kept : new Owned(owner))

// Many at once, because most of a row's time is spent on waiting for the turns that it is aimed at, and no row changes what another one is aimed at.
describe.concurrent('aimed', () => {
  describe.each(calls)('%s', (name, { shows, to, rights: enough = [], reads, ofEnded }: AimedCall) => {
    test('shows its owner what is the owner’s', async () => {
      const { status, text } = await ask(name, await to(aim(name)), owner.key)
      expect([status < 500, text.includes(mark)], `${status} ${text.slice(0, 500)}`).toEqual([true, shows])
    })

    test('shows another tenant, and a key of another agent, nothing, and changes nothing for them', async () => {
      const call = await to(kept)
      for (const key of [foreign, limited, limitedAdmin]) {
        const { text, status } = await ask(name, call, key)
        expect([status < 500, text.includes(mark)], text.slice(0, 500)).toEqual([true, false])
      }
      expect(await digestsNow()).toEqual(before)
    })

    test('shows a key that may only write nothing that it has not sent', async () => {
      const { status, text } = await ask(name, await to(aim(name)), writer)
      expect(text).not.toContain(mark)
      if (name.startsWith('GET') || reads) expect(status).toBe(403)
    })

    test('takes a token with each right alone as far as this right goes', async () => {
      const task = ofEnded ? await kept.ended() : await kept.asking()
      const call = await to(kept)
      for (const right of rights.filter(one => !enough.includes(one))) {
        const { status, text } = await ask(name, call, tokens.get(`${task.id} ${right}`) ?? '')
        expect([right, status, text.includes(mark)]).toEqual([right, 403, false])
      }
      expect(await digestsNow()).toEqual(before)
      for (const right of enough) {
        const own = aim(name)
        const call = await to(own)
        const { id } = ofEnded ? await own.ended() : await own.asking()
        const { status, text } = await ask(name, call, await own.token(id, [right]))
        expect([right, status < 300, text.includes(mark) && !['read', 'answer'].includes(right)]).toEqual([right, true, false])
      }
    })
  })
})
