/** How an installation is closed: what it starts without, where workers ask, how much each key may ask for, and how keys are made. */
import { get } from 'node:http'
import { type Keyring, openKeyring, type Scope } from '@rivulet/api/keys'
import { createClient as connect } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createTestDatabase } from '../support/engines/database.ts'
import { freePort } from '../support/free-port.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { startProcess } from '../support/platform/platform-process.ts'
import { runCli } from '../support/terminal.ts'

const pepper = 'a pepper that is long enough for this test'
const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper }
const root = { authorization: `Bearer ${env.RIVULET_KEY}` }

let platform: Platform
let keyring: Keyring
beforeAll(async () => {
  platform = await startPlatform({ env })
  keyring = openKeyring(platform.databaseUrl)
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

const makeKey = (scopes: Scope[], tenant = 'acme') => keyring.create({ tenant, name: '', scopes }, pepper)

describe('an API that others could reach', () => {
  const address = async () => ({ REDIS_URL: inject('redisUrl'), HOST: '0.0.0.0', PORT: await freePort() })

  test('does not start without a key, and says what to do', async () => {
    const api = startProcess('api', 'open api', { ...(await address()), DATABASE_URL: platform.databaseUrl })
    expect((await api.exited).code).toBe(1)
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

test('[input 4] with keys and a list of hosts, it accepts those names and IP addresses; its workers have a listener without that list', async () => {
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

  test('[input 35] a caller above the rate limit gets the time to retry, and no other caller is limited', async () => {
    const [busy, calm] = [await makeKey(['tasks:read']), await makeKey(['tasks:read'])]
    const ask = (key: string) => fetch(`${api.url}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })
    const answers = []
    for (let i = 0; i < 6; i += 1) answers.push(await ask(busy.key))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429, 429])
    expect(Number(answers[4]?.headers.get('retry-after'))).toBeGreaterThan(1)
    expect(await answers[4]?.text()).toMatch(/"rate_limited".*RATE_LIMIT_PER_SECOND/)
    expect((await ask(calm.key)).status).toBe(200)
  })

  test('the key of the environment is the installation’s own, and has no such limit', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${api.url}/v1/agents`, { headers: root })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('[input 41] a key has so many streams, a process so many in all, and an EventSource is asked to come back', async () => {
    const leaving = new AbortController()
    const [other, own] = [await makeKey(['tasks:read']), await makeKey(['tasks:read'], 'default')]
    const token = (await connect({ url: platform.url, key: own.key }).tasks.get(task).createToken({ can: 'read' })).token
    const watch = (headers: Record<string, string>, query = '') =>
      fetch(`${api.url}/v1/tasks/${task}/events?follow=true${query}`, { headers, signal: leaving.signal })
    const owner = { authorization: `Bearer ${own.key}` }
    expect((await watch(owner)).status).toBe(200)
    const second = await watch(owner)
    expect([second.status, second.headers.get('retry-after'), await second.text()]).toEqual([
      429,
      '5',
      expect.stringContaining('MAX_STREAMS_PER_KEY'),
    ])
    const shed = await watch({}, `&token=${token}`)
    expect([shed.status, await shed.text()]).toEqual([200, 'retry: 15000\n\n'])
    // Who was refused, or not found, takes no place.
    expect((await watch({ authorization: `Bearer ${other.key}` })).status).toBe(404)
    const [guest, third] = await Promise.all([makeKey(['tasks:read'], 'default'), makeKey(['tasks:read'], 'default')])
    expect((await watch({ authorization: `Bearer ${guest.key}` })).status).toBe(200)
    const full = await watch({ authorization: `Bearer ${third.key}` })
    expect([full.status, full.headers.get('retry-after'), await full.text()]).toEqual([503, '5', expect.stringContaining('(MAX_STREAMS)')])
    leaving.abort()
  })

  test('a page of an origin on the list may call, also the stream', async () => {
    const headers = { ...root, origin: 'https://app.example' }
    const leaving = new AbortController()
    for (const path of ['/v1/agents', `/v1/tasks/${task}/events`, '/v1/nowhere']) {
      const response = await fetch(`${platform.apis.at(-1)?.url}${path}`, { headers, signal: leaving.signal })
      expect([path, response.headers.get('access-control-allow-origin')]).toEqual([path, 'https://app.example'])
    }
    leaving.abort()
  })

  test('[input 41] a token and a task have so many streams each, so the holder of one token does not lock others out', async () => {
    const narrow = await platform.startApi({ env: { MAX_STREAMS_PER_TOKEN: '2', MAX_STREAMS_PER_TASK: '5' } })
    const leaving = new AbortController()
    const owner = connect({ url: platform.url, key: (await makeKey(['tasks:read'], 'default')).key }).tasks.get(task)
    const watch = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${narrow.url}/v1/tasks/${task}/events?follow=true`, { headers, signal: leaving.signal })
      return response.ok ? response.status : [response.status, response.headers.get('retry-after'), await response.text()]
    }
    const refused = (setting: string) => [429, '5', expect.stringMatching(`too_many_streams.*\\(${setting}\\)`)]
    const tokenOf = async (subject?: string) => (await owner.createToken({ can: 'read', ...(subject && { subject }) })).token
    const first = await tokenOf()
    expect([await watch(first), await watch(first), await watch(first)]).toEqual([200, 200, refused('MAX_STREAMS_PER_TOKEN')])
    const shed = await fetch(`${narrow.url}/v1/tasks/${task}/events?token=${first}`)
    expect([shed.status, await shed.text()]).toEqual([200, 'retry: 15000\n\n'])
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
    expect(await run('create', '--all-tenants')).toMatchObject({ ...usage, stderr: expect.stringContaining('--scope worker') })
    expect(await run('create', '--agent', 'echo')).toMatchObject({ ...usage, stderr: expect.stringContaining('--scope worker') })
    expect(await run('create', '--scope', 'worker', '--agent', 'No Name')).toMatchObject({ code: 1, stdout: '' })
  })
})
