/** How an installation is closed: what it starts without, where workers ask, how much each key may ask for, and how keys are made. */
import { mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient as connect } from '@rivulet/client'
import type { Scope } from '@rivulet/contract/scopes'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../support/engines/certificate.ts'
import { createTestDatabase } from '../support/engines/database.ts'
import { freePort } from '../support/free-port.ts'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { startProcess } from '../support/platform/platform-process.ts'
import { runCli } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper }
const root = { authorization: `Bearer ${env.RIVULET_KEY}` }

let platform: Platform
let keyring: TestKeyring
beforeAll(async () => {
  platform = await startPlatform({ env })
  keyring = openTestKeyring(platform.databaseUrl)
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

const makeKey = (scopes: Scope[], tenant = 'acme') => keyring.create({ tenant, scopes })

describe('an API that others could reach', () => {
  const address = async () => ({ REDIS_URL: inject('redisUrl'), HOST: '0.0.0.0', PORT: await freePort() })

  test('does not start without a key, and says what to do', async () => {
    const api = startProcess('api', 'open api', { ...(await address()), DATABASE_URL: platform.databaseUrl })
    expect((await api.exited).code).toBe(78)
    expect(JSON.stringify(api.lines)).toMatch(
      /HOST: .*without a key: set RIVULET_KEY, or KEY_PEPPER and create keys with `rivulet keys create`/,
    )
  })

  test('does not go on when there is a pepper and not one key', async () => {
    const { url } = await createTestDatabase()
    const api = startProcess('api', 'keyless api', { ...(await address()), DATABASE_URL: url, KEY_PEPPER: pepper })
    expect((await api.exited).code).toBe(1)
    expect(JSON.stringify(api.lines)).toContain('create one with `rivulet keys create`')
  })
})

test('a key of some agents has nothing of a child of another agent, on a stream of a tree or as a subagent', async () => {
  const { key } = await keyring.create({ tenant: 'acme', scopes: ['tasks:read', 'tasks:write'], agents: ['scripted'] })
  const all = await makeKey(['tasks:read', 'tasks:write'])
  const ask = async (whose: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${whose}`, 'content-type': 'application/json' }
    return (await fetch(`${platform.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).text()
  }
  const params = { steps: [{ spawn: { name: 'child', agent: 'echo', input: 'secretofecho' } }] }
  const run = { runId: 'r', messages: [{ id: 'u', role: 'user', content: 'go' }], forwardedProps: params }
  const [task] = await Promise.all(
    [all.key, key].map(async (whose, place) => {
      const told = await ask(whose, '/ag-ui/scripted', { ...run, threadId: `tree ${place}` })
      expect(told).toContain('SUBAGENT_STARTED')
      expect(told).toMatch(/SUBAGENT_FINISHED.*success[\s\S]*RUN_FINISHED/)
      expect([place, told.includes('secretofecho')]).toEqual([place, place === 0])
      const { rows } = await platform.pg.query('select id from tasks where name = $1', [`tree ${place}`])
      return String(rows[0]?.id)
    }),
  )
  const tree = { tasks: { [task ?? '']: '0-0' }, children: true }
  expect(await ask(all.key, '/v1/events', tree)).toContain('secretofecho')
  expect(await ask(key, '/v1/events', tree)).not.toContain('secretofecho')
})

test('without keys it logs that, and accepts only the names of this machine', async () => {
  const api = await platform.startApi({ env: { RIVULET_KEY: '', RIVULET_WORKER_KEY: '', KEY_PEPPER: '' } })
  await api.said('no key is required; only this machine can call')
  const { port } = new URL(api.url)
  const ask = (host: string) =>
    new Promise(resolve => get(`${api.url}/v1/agents`, { headers: { host } }, response => resolve(response.resume().statusCode)))
  for (const host of [`127.0.0.1:${port}`, 'localhost', `[::1]:${port}`]) expect([host, await ask(host)]).toEqual([host, 200])
  for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example'])
    expect([host, await ask(host)]).toEqual([host, 403])
  await api.kill('SIGTERM')
})

test('with keys and a list of hosts, it accepts those names and IP addresses; its workers have a listener without that list', async () => {
  const internal = await freePort()
  const api = await platform.startApi({ env: { ALLOWED_HOSTS: 'api.example.com', INTERNAL_PORT: internal } })
  const ask = (host: string, path: string, url = api.url) =>
    new Promise(resolve => get(`${url}${path}`, { headers: { host, ...root } }, response => resolve(response.resume().statusCode)))
  for (const path of ['/v1/agents', '/', '/docs', '/openapi.json'])
    expect([path, await ask('api.example.com', path), await ask('evil.example', path)]).toEqual([path, 200, 403])
  expect([await ask('10.0.0.1', '/v1/agents'), await ask('evil.example', '/healthz'), await ask('evil.example', '/readyz')]).toEqual([
    200, 200, 200,
  ])
  expect(await ask('api.internal', '/metrics', `http://127.0.0.1:${internal}`)).toBe(200)
  await api.kill('SIGTERM')
})

test('no response may be shown in a frame, and no page of the API may be framed or load from elsewhere', async () => {
  for (const path of ['/', '/docs', '/openapi.json', '/healthz', '/nowhere', '/v1/agents']) {
    const { headers } = await fetch(`${platform.url}${path}`, { headers: root })
    expect([path, headers.get('x-frame-options'), headers.get('x-content-type-options')]).toEqual([path, 'DENY', 'nosniff'])
    if (path === '/' || path === '/docs')
      expect([path, headers.get('content-security-policy')]).toEqual([
        path,
        expect.stringMatching(/default-src 'self'.*frame-ancestors 'none'/),
      ])
  }
})

test('a private address is rejected wherever a caller can name one for the API to call', async () => {
  const [hidden, itself, open] = ['http://169.254.169.254/latest', `${platform.url}/v1/tasks`, 'https://example.com/hook']
  const call = async (method: string, path: string, body: object) => {
    const headers = { ...root, 'content-type': 'application/json' }
    const response = await fetch(`${platform.url}${path}`, { method, headers, body: JSON.stringify(body) })
    return [response.status, JSON.parse(await response.text())] as const
  }
  const hook = { events: ['turn.finished'] }
  const [, { webhook }] = await call('POST', '/v1/webhooks', { ...hook, url: open })
  const work = { agent: 'echo', input: 'hello', onEnd: { url: hidden } }
  for (const [method, path, body] of [
    ['POST', '/v1/webhooks', { ...hook, url: hidden }],
    ['POST', '/v1/webhooks', { ...hook, url: itself }],
    ['PATCH', `/v1/webhooks/${webhook.id}`, { url: hidden }],
    ['POST', '/v1/tasks', work],
    ['POST', '/v1/schedules', { ...work, cron: '0 0 1 1 *' }],
  ] as const)
    expect([path, await call(method, path, body)]).toMatchObject([path, [400, { error: { code: 'validation_failed' } }]])
})

test('what workers ask can be asked elsewhere, and is then not here', async () => {
  const port = await freePort()
  const api = await platform.startApi({ env: { INTERNAL_PORT: port } })
  const elsewhere = `http://127.0.0.1:${port}`
  const hello = async (url: string, key = '') => {
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
    return (await fetch(`${url}/internal/hello`, { method: 'POST', headers, body: '{"worker":"w","agents":[]}' })).status
  }
  expect([await hello(api.url, env.RIVULET_WORKER_KEY), await hello(elsewhere, env.RIVULET_WORKER_KEY), await hello(elsewhere)]).toEqual([
    404, 200, 401,
  ])
  expect((await fetch(`${elsewhere}/v1/tasks`, { headers: root })).status).toBe(404)
  expect((await fetch(`${elsewhere}/healthz`)).status).toBe(200)
  const worker = await platform.startWorker({ RIVULET_URL: elsewhere })
  await worker.kill('SIGTERM')
  await api.kill('SIGTERM')
})

test('workers reach the API over TLS on a port of their own, if they trust its certificate', async context => {
  if (!hasOpenssl) return context.skip('no openssl')
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-internal-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { path, keyPath } = createCertificate(folder)
  const port = await freePort()
  const api = await platform.startApi({ env: { INTERNAL_PORT: port, INTERNAL_TLS_CERT: path, INTERNAL_TLS_KEY: keyPath } })
  expect(api.lines.find(({ msg }) => msg === 'api is listening')).toMatchObject({ internalUrl: `https://127.0.0.1:${port}` })
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
  await expect(fetch(`https://127.0.0.1:${port}/healthz`)).rejects.toMatchObject({ cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
  const worker = await platform.startWorker({ RIVULET_URL: `https://127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: path })
  await worker.kill('SIGTERM')
  await api.kill('SIGTERM')
})

test('where only workers need a key, the listener of workers is closed for everything but health', async () => {
  const port = await freePort()
  const api = await platform.startApi({ env: { RIVULET_KEY: '', KEY_PEPPER: '', INTERNAL_PORT: port } })
  const elsewhere = `http://127.0.0.1:${port}`
  const ask = async (url: string, headers = {}) => (await fetch(`${url}/metrics`, { headers })).status
  expect([await ask(api.url), await ask(elsewhere)]).toEqual([200, 401])
  expect(await ask(elsewhere, { authorization: `Bearer ${env.RIVULET_WORKER_KEY}` })).toBe(403)
  expect((await fetch(`${elsewhere}/healthz`)).status).toBe(200)
  await api.kill('SIGTERM')
})

describe('limits', () => {
  let api: ApiProcess
  let task: string
  /** Held until the tests end, because Node closes the stream of a response that is collected as garbage, and so frees its place. */
  const held: Response[] = []
  const openStream = async (url: string, headers: Record<string, string>, signal: AbortSignal) => {
    const response = await fetch(url, { headers, signal })
    held.push(response)
    return response
  }
  beforeAll(async () => {
    api = await platform.startApi({
      env: {
        RATE_LIMIT_PER_SECOND: '0.1',
        RATE_LIMIT_BURST: '4',
        MAX_STREAMS_PER_KEY: '1',
        MAX_STREAMS: '2',
        CORS_ORIGINS: 'https://app.example',
      },
    })
    task = (await connect({ url: platform.url, key: env.RIVULET_KEY }).tasks.create({ agent: 'echo', input: 'hello' })).id
  })

  test('a caller above the rate limit gets the time to retry, and no other caller is limited', async () => {
    const [busy, calm] = [await makeKey(['tasks:read']), await makeKey(['tasks:read'])]
    const ask = (key: string) => fetch(`${api.url}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })
    const replies = []
    for (let i = 0; i < 6; i += 1) replies.push(await ask(busy.key))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429, 429])
    expect(Number(replies[4]?.headers.get('retry-after'))).toBeGreaterThan(1)
    expect(await replies[4]?.text()).toMatch(/"rate_limited".*RATE_LIMIT_PER_SECOND/)
    expect((await ask(calm.key)).status).toBe(200)
  })

  test('the key of the environment is the installation’s own, and has no such limit', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => fetch(`${api.url}/v1/agents`, { headers: root })))
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('a key has so many streams, a process so many in all, and an EventSource is asked to come back', async () => {
    const leaving = new AbortController()
    const [other, own] = [await makeKey(['tasks:read']), await makeKey(['tasks:read'], 'default')]
    const token = (await connect({ url: platform.url, key: own.key }).tasks.get(task).createToken({ can: 'read' })).token
    const watch = (headers: Record<string, string>, query = '') =>
      openStream(`${api.url}/v1/tasks/${task}/events?follow=true${query}`, headers, leaving.signal)
    const owner = { authorization: `Bearer ${own.key}` }
    expect((await watch(owner)).status).toBe(200)
    const second = await watch(owner)
    expect([second.status, second.headers.get('retry-after'), await second.text()]).toEqual([
      429,
      '5',
      expect.stringContaining('MAX_STREAMS_PER_KEY'),
    ])
    const shed = await watch({}, `&token=${token}`)
    expect([shed.status, await shed.text()]).toEqual([200, 'retry: 15000\n'])
    // A rejected request takes no place.
    expect((await watch({ authorization: `Bearer ${other.key}` })).status).toBe(404)
    const [guest, third] = await Promise.all([makeKey(['tasks:read'], 'default'), makeKey(['tasks:read'], 'default')])
    expect((await watch({ authorization: `Bearer ${guest.key}` })).status).toBe(200)
    const full = await watch({ authorization: `Bearer ${third.key}` })
    expect([full.status, full.headers.get('retry-after'), await full.text()]).toEqual([503, '5', expect.stringContaining('(MAX_STREAMS)')])
    leaving.abort()
  })

  test.each([
    ['a key', 1, { RATE_LIMIT_PER_SECOND: '0.1', RATE_LIMIT_BURST: '200', MAX_STREAMS_PER_KEY: '4' }],
    ['a tenant', 2, { RATE_LIMIT_TENANT_PER_SECOND: '0.1', RATE_LIMIT_TENANT_BURST: '200', MAX_STREAMS_PER_TENANT: '4' }],
  ])('the requests and the streams of %s count for all API processes together, and limit no other', async (whose, keys, narrow) => {
    const [first, second] = await Promise.all([platform.startApi({ env: narrow }), platform.startApi({ env: narrow })])
    const leaving = new AbortController()
    // The first process is asked with one key, the second with another if the limit is that of the tenant.
    const keysOf = async (tenant: string) => {
      const made = await Promise.all(Array.from({ length: keys }, () => makeKey(['tasks:read', 'tasks:write'], `${tenant} of ${whose}`)))
      return [made[0]?.key ?? '', made.at(-1)?.key ?? ''] as const
    }
    const [busy, watching, calm] = await Promise.all([keysOf('busy'), keysOf('watching'), keysOf('calm')])
    const newTask = async ([key]: readonly [string, string]) =>
      (await connect({ url: platform.url, key }).tasks.create({ agent: 'echo', input: 'hello' })).id
    const [watched, calmTask] = await Promise.all([newTask(watching), newTask(calm)])
    const [rate, streams] = [Object.keys(narrow)[0], Object.keys(narrow)[2]]
    const ask = async ({ url }: ApiProcess, key: string) => {
      const response = await fetch(`${url}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })
      const text = await response.text()
      if (response.status === 429) expect(text).toMatch(new RegExp(`"rate_limited".*per second \\(${rate}\\)`))
      return response.status
    }
    const watch = async ({ url }: ApiProcess, key: string, id: string, signal: AbortSignal) => {
      const response = await openStream(`${url}/v1/tasks/${id}/events?follow=true`, { authorization: `Bearer ${key}` }, signal)
      if (response.status === 429) expect(await response.text()).toMatch(new RegExp(`"too_many_streams".*\\(${streams}\\)`))
      return response.status
    }
    // A few at a time, because a busy machine returns 503 to the rest.
    for (let i = 0; i < 10; i += 1) expect(await Promise.all(Array.from({ length: 20 }, () => ask(first, busy[0])))).not.toContain(429)
    // The questions of a whole wait stay below two hundred, because by itself the second process would accept as many.
    const slowly = { intervalMs: 500 }
    let asked = 0
    await until(
      'the second process rejects the caller',
      async () => {
        asked += 1
        return (await ask(second, busy[1])) === 429
      },
      slowly,
    )
    expect(asked).toBeLessThan(150)
    for (let i = 0; i < 4; i += 1) expect(await watch(first, watching[0], watched, leaving.signal)).toBe(200)
    await until(
      'the second process opens no stream of the caller',
      async () => {
        const closing = new AbortController()
        const status = await watch(second, watching[1], watched, closing.signal)
        closing.abort()
        return status === 429
      },
      slowly,
    )
    for (const api of [first, second])
      expect([await ask(api, calm[1]), await watch(api, calm[1], calmTask, leaving.signal)]).toEqual([200, 200])
    const counted = await (await fetch(`${second.url}/metrics`, { headers: root })).text()
    for (const setting of [rate, streams])
      expect(counted).toMatch(new RegExp(`^rivulet_limit_rejections_total\\{setting="${setting}"\\} [1-9]`, 'm'))
    leaving.abort()
    await Promise.all([first.kill('SIGTERM'), second.kill('SIGTERM')])
  })

  test('a page of an origin on the list may call, also the stream', async () => {
    const headers = { ...root, origin: 'https://app.example' }
    const leaving = new AbortController()
    for (const path of ['/v1/agents', `/v1/tasks/${task}/events`, '/v1/nowhere']) {
      const response = await fetch(`${api.url}${path}`, { headers, signal: leaving.signal })
      expect([path, response.headers.get('access-control-allow-origin')]).toEqual([path, 'https://app.example'])
    }
    leaving.abort()
  })

  test('MCP rejects a page of another origin also with a key, and serves one of an origin on the list', async () => {
    const ask = async (from: Record<string, string>) => {
      const headers = { ...root, ...from, 'content-type': 'application/json' }
      const response = await fetch(`${api.url}/mcp`, { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
      return [response.status, ((await response.json()) as { error?: { data: { code: string } } }).error?.data.code]
    }
    for (const origin of ['https://evil.example', 'null']) expect([origin, ...(await ask({ origin }))]).toEqual([origin, 403, 'forbidden'])
    for (const from of [{}, { origin: 'https://app.example' }, { origin: api.url }]) expect(await ask(from)).toEqual([200, undefined])
  })

  test('a token and a task have so many streams each, so the holder of one token does not lock others out', async () => {
    const narrow = await platform.startApi({ env: { MAX_STREAMS_PER_TOKEN: '2', MAX_STREAMS_PER_TASK: '5' } })
    const leaving = new AbortController()
    const owner = connect({ url: platform.url, key: (await makeKey(['tasks:read'], 'default')).key }).tasks.get(task)
    const watch = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await openStream(`${narrow.url}/v1/tasks/${task}/events?follow=true`, headers, leaving.signal)
      return response.ok ? response.status : [response.status, response.headers.get('retry-after'), await response.text()]
    }
    const refused = (setting: string) => [429, '5', expect.stringMatching(`too_many_streams.*\\(${setting}\\)`)]
    const tokenOf = async (subject?: string) => (await owner.createToken({ can: 'read', ...(subject && { subject }) })).token
    const first = await tokenOf()
    expect([await watch(first), await watch(first), await watch(first)]).toEqual([200, 200, refused('MAX_STREAMS_PER_TOKEN')])
    const shed = await fetch(`${narrow.url}/v1/tasks/${task}/events?token=${first}`)
    expect([shed.status, await shed.text()]).toEqual([200, 'retry: 15000\n'])
    expect([await watch(await tokenOf('anna')), await watch(await tokenOf('anna')), await watch(await tokenOf('anna'))]).toEqual([
      200,
      200,
      refused('MAX_STREAMS_PER_TOKEN'),
    ])
    expect([await watch(await tokenOf()), await watch(await tokenOf())]).toEqual([200, refused('MAX_STREAMS_PER_TASK')])
    // The installation's own key has no such limit.
    expect(await watch(env.RIVULET_KEY)).toBe(200)
    leaving.abort()
    await narrow.kill('SIGTERM')
  })
})

describe('rivulet keys', () => {
  const run = (...args: string[]) => runCli(['keys', ...args], { env: { DATABASE_URL: platform.databaseUrl, KEY_PEPPER: pepper } })

  test('creates a key that works at once, shows it once, lists and revokes it', async () => {
    const key = (await run('create', '--tenant', 'cli', '--scope', 'tasks:read', '--name', 'for ci', '--expires', '30d')).stdout.trim()
    expect(key).toMatch(/^rvk_[0-9a-f]{16}_[\w-]{43}$/)
    const client = connect({ url: platform.url, key, maxRetries: 0 })
    expect((await client.agents.list()).length).toBeGreaterThan(0)
    await expect(client.tasks.create({ agent: 'echo' })).rejects.toMatchObject({ code: 'forbidden' })
    const [, id = ''] = key.split('_')
    const { stdout: table } = await run('list')
    expect([table.includes(id), table.includes('good until'), table.includes(key.slice(-43))]).toEqual([true, true, false])
    expect(JSON.parse((await run('revoke', id, '--json')).stdout)).toMatchObject({ id, tenant: 'cli', revokedAt: expect.any(String) })
    expect(await run('revoke', '0000000000000000')).toMatchObject({ code: 1, stderr: expect.stringContaining('No key has this id') })
    expect(await run('create', '--scope', 'everything')).toMatchObject({ code: 2, stdout: '' })
  })

  test('creates worker keys: for one tenant, for all, for some agents; and refuses what would mean nothing', async () => {
    const create = async (...args: string[]) => JSON.parse((await run('create', '--scope', 'worker', '--json', ...args)).stdout)
    const own = await create('--tenant', 'cli', '--agent', 'echo', '--agent', 'scripted')
    expect(own).toMatchObject({ tenant: 'cli', scopes: ['worker'], agents: ['echo', 'scripted'] })
    expect(own).not.toHaveProperty('allTenants')
    expect(await create('--all-tenants')).toMatchObject({ tenant: 'default', allTenants: true })
    const { stdout: table } = await run('list')
    expect(table).toMatch(/worker +cli \(echo scripted\) +good/)
    expect(table).toMatch(/worker +all tenants +good/)
    const usage = { code: 2, stdout: '' }
    expect(await run('create', '--all-tenants', '--tenant', 'cli', '--scope', 'worker')).toMatchObject(usage)
    expect(await run('create', '--all-tenants')).toMatchObject({ ...usage, stderr: expect.stringContaining('scope worker') })
    expect(await run('create', '--agents', 'a', '--scope', 'admin')).toMatchObject({
      ...usage,
      stderr: expect.stringContaining('scope admin'),
    })
    expect(await run('create', '--scope', 'worker', '--agent', 'No Name')).toMatchObject(usage)
  })

  test('creates keys for callers of some agents', async () => {
    const { stdout } = await run('create', '--agents', 'echo, scripted', '--agent', 'played', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ scopes: ['tasks:read', 'tasks:write'], agents: ['played', 'echo', 'scripted'] })
    expect((await run('list')).stdout).toMatch(/tasks:write +\(played echo scripted\) +good/)
  })

  test('rotates a key; both are valid for the overlap', async () => {
    const old = JSON.parse((await run('create', '--tenant', 'cli', '--name', 'rotated', '--json')).stdout)
    const { stdout, stderr } = await run('rotate', old.id, '--overlap', '1h')
    expect([stdout.trim(), stderr]).toEqual([
      expect.stringMatching(/^rvk_/),
      expect.stringContaining(`The old key ${old.id} is valid until`),
    ])
    for (const key of [old.key, stdout.trim()]) expect(await statusOf(key)).toBe(200)
    expect((await run('list')).stdout).toMatch(new RegExp(`${old.id} .*replaced, good until`))
  })

  test('with a URL goes over HTTP, with the permissions of its key', async () => {
    const admin = await makeKey(['admin'])
    const call = (...args: string[]) => runCli(['keys', ...args], { env: { RIVULET_URL: platform.url, RIVULET_KEY: admin.key } })
    const created = JSON.parse((await call('create', '--name', 'over http', '--expires', '1d', '--json')).stdout)
    expect(created).toMatchObject({ tenant: 'acme', name: 'over http', expiresAt: expect.any(String) })
    expect(await statusOf(created.key)).toBe(200)
    const rotated = JSON.parse((await call('rotate', created.id, '--overlap', '0s', '--json')).stdout)
    expect(rotated.replaced).toMatchObject({ id: created.id, replacedBy: rotated.id })
    expect([await statusOf(created.key), await statusOf(rotated.key)]).toEqual([401, 200])
    expect((await call('list')).stdout).toMatch(new RegExp(`${created.id} .*expired`))
    expect(await call('revoke', rotated.id)).toMatchObject({ code: 0, stdout: `${rotated.id} is revoked\n` })
    expect(await statusOf(rotated.key)).toBe(401)
    expect(await call('create', '--tenant', 'rival')).toMatchObject({ code: 1, stderr: expect.stringContaining('Only the root key') })
    expect(await call('list', '--key', 'wrong')).toMatchObject({ code: 1, stderr: expect.stringContaining('requires a key') })
  })
})

describe('keys over HTTP', () => {
  const keysOf = (key: string) => connect({ url: platform.url, key, maxRetries: 0 }).keys
  const post = (path: string, body: unknown, { key = env.RIVULET_KEY, ...headers }: Record<string, string> = {}) =>
    fetch(`${platform.url}/v1/keys${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify(body),
    })

  test('a key that an admin creates works at once, for the admin’s tenant; its secret is in no log line', async () => {
    const admin = await makeKey(['admin'])
    const { key, secret } = await keysOf(admin.key).create({ name: 'ci', expiresInSeconds: 60 })
    expect(key).toMatchObject({ tenant: 'acme', name: 'ci', scopes: ['tasks:read', 'tasks:write'] })
    expect(Date.parse(key.expiresAt ?? '') - Date.parse(key.createdAt)).toBe(60_000)
    expect(await statusOf(secret)).toBe(200)
    const response = await post('', {}, { key: admin.key })
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
    const other = (await response.json()) as { key: { id: string }; secret: string }
    const said = await until('a line has the id of the key', () => {
      const text = JSON.stringify(platform.apis.map(({ lines }) => lines))
      return text.includes(other.key.id) && text
    })
    for (const text of [secret, other.secret]) expect(said.includes(text.slice(-43))).toBe(false)
  })

  test('a rotation gives a key with the same terms; the old one is valid until the overlap ends', async () => {
    const keys = keysOf((await makeKey(['admin'])).key)
    const terms = { name: 'worker', scopes: ['worker', 'tasks:read'] as Scope[], agents: ['echo'], expiresInSeconds: 3_600 }
    const old = await keys.create(terms)
    const { key, secret, replaced } = await keys.rotate(old.key.id, { overlapSeconds: 2 })
    expect(key).toMatchObject({ tenant: 'acme', name: 'worker', scopes: terms.scopes, agents: ['echo'] })
    expect(Date.parse(key.expiresAt ?? '') - Date.parse(key.createdAt)).toBe(3_600_000)
    expect(Date.parse(replaced.expiresAt ?? '') - Date.parse(key.createdAt)).toBe(2_000)
    expect(replaced).toMatchObject({ id: old.key.id, replacedBy: key.id })
    expect(await statusOf(secret)).toBe(200)
    await until('the old key has expired', async () => (await statusOf(old.secret)) === 401)
    expect(await statusOf(secret)).toBe(200)
    await expect(keys.rotate(old.key.id)).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining('replacedBy') })
  })

  test('both keys are valid during the overlap, which never makes a key last longer', async () => {
    const keys = keysOf((await makeKey(['admin'])).key)
    const [endless, short] = [await keys.create(), await keys.create({ expiresInSeconds: 60 })]
    const [first, second] = [await keys.rotate(endless.key.id), await keys.rotate(short.key.id)]
    for (const { secret } of [endless, short, first, second]) expect(await statusOf(secret)).toBe(200)
    expect(first.key).not.toHaveProperty('expiresAt')
    expect(second.replaced.expiresAt).toBe(short.key.expiresAt)
  })

  test('a revocation takes effect at once in the API that did it, and again returns the same', async () => {
    const keys = keysOf((await makeKey(['admin'])).key)
    const { key, secret } = await keys.create()
    expect(await statusOf(secret)).toBe(200)
    const revoked = await keys.revoke(key.id)
    expect(await statusOf(secret)).toBe(401)
    expect(await keys.revoke(key.id)).toEqual(revoked)
    await expect(keys.rotate(key.id)).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('an admin stays within its tenant, and grants no more than that; the root key may name any', async () => {
    const keys = keysOf((await makeKey(['admin'])).key)
    await expect(keys.create({ tenant: 'rival' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(keys.create({ scopes: ['worker'], allTenants: true })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(keys.list({ tenant: 'rival' })).rejects.toMatchObject({ code: 'forbidden' })
    expect((await keys.create({ tenant: 'acme', scopes: ['worker'] })).key).not.toHaveProperty('allTenants')
    const root = keysOf(env.RIVULET_KEY)
    const rival = await root.create({ tenant: 'rival' })
    expect([rival.key.tenant, (await root.create({ scopes: ['worker'], allTenants: true })).key]).toMatchObject([
      'rival',
      { allTenants: true },
    ])
    await expect(keys.revoke(rival.key.id)).rejects.toMatchObject({ code: 'not_found' })
    await expect(keys.rotate(rival.key.id)).rejects.toMatchObject({ code: 'not_found' })
    expect(await statusOf(rival.secret)).toBe(200)
  })

  test('pages go through all keys, oldest first', async () => {
    const tenant = 'pages'
    const keys = keysOf((await makeKey(['admin'], tenant)).key)
    const made = []
    for (let i = 0; i < 5; i += 1) made.push((await keys.create()).key.id)
    const seen = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await keys.list({ limit: 2, ...(cursor && { cursor }) })
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.nextCursor
    }
    expect([seen.length, new Set(seen.slice(1))]).toEqual([6, new Set(made)])
  })

  test.each([
    ['an unknown field', '', { shout: true }, 'validation_failed'],
    ['no scope', '', { scopes: [] }, 'validation_failed'],
    ['an unknown scope', '', { scopes: ['everything'] }, 'validation_failed'],
    ['a long name', '', { name: 'a'.repeat(201) }, 'validation_failed'],
    ['a time that is over', '', { expiresInSeconds: 0 }, 'validation_failed'],
    ['all tenants without the scope worker', '', { allTenants: true }, 'validation_failed'],
    ['agents with the scope admin', '', { agents: ['echo'], scopes: ['admin'] }, 'validation_failed'],
    ['a tenant and all tenants', '', { scopes: ['worker'], tenant: 'acme', allTenants: true }, 'validation_failed'],
    ['a long overlap', `/${'0'.repeat(16)}/rotate`, { overlapSeconds: 31 * 86_400 }, 'validation_failed'],
    ['an invalid id', '/nonsense/rotate', {}, 'validation_failed'],
  ])('%s is 400', async (_, path, body, code) => {
    const response = await post(path, body)
    expect([response.status, (await response.json()) as object]).toMatchObject([400, { error: { code } }])
  })

  test('an Idempotency-Key is rejected, because the API would have to store the secret', async () => {
    const response = await post('', {}, { 'idempotency-key': 'once' })
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('idempotency_key_invalid')])
  })

  test('a tenant has so many valid keys, also when they are created at once; a rotation needs room, a revocation makes it', async () => {
    const api = await platform.startApi({ env: { MAX_KEYS_PER_TENANT: '3' } })
    const keys = connect({ url: api.url, key: env.RIVULET_KEY, maxRetries: 0 }).keys
    const made = await Promise.allSettled(Array.from({ length: 8 }, () => keys.create({ tenant: 'crowded' })))
    const created = made.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value.key.id] : []))
    expect(created).toHaveLength(3)
    const refusal = { code: 'quota_exceeded', message: expect.stringContaining('3 keys of this tenant are valid') }
    for (const outcome of made) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(refusal)
    const [first = '', second = ''] = created
    await expect(keys.rotate(first)).rejects.toMatchObject(refusal)
    await keys.revoke(first)
    await keys.rotate(second)
    await expect(keys.create({ tenant: 'crowded' })).rejects.toMatchObject(refusal)
    await keys.create({ tenant: 'roomy' })
    await api.kill('SIGTERM')
  })

  test('an API without KEY_PEPPER names it', async () => {
    const api = await platform.startApi({ env: { KEY_PEPPER: '' } })
    const keys = connect({ url: api.url, key: env.RIVULET_KEY, maxRetries: 0 }).keys
    await expect(keys.create()).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining('KEY_PEPPER') })
    await api.kill('SIGTERM')
  })
})

async function statusOf(key: string): Promise<number> {
  return (await fetch(`${platform.url}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })).status
}
