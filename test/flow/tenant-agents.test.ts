/** Agents are named within a tenant: workers of two tenants, and those of all tenants, run agents of one name. */
import { randomUUID } from 'node:crypto'
import type { CreateKey } from '@rivulet/contract/keys'
import { createWorker, defineAgent, type Logger } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { type Accepted, createClient, type Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { startProxy } from '../support/viewers/proxy.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper }
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
const tenants = ['acme', 'rival', 'third'] as const
type TenantName = (typeof tenants)[number]

let platform: Platform
let keyring: TestKeyring
const callers: Record<TenantName, string> = { acme: '', rival: '', third: '' }

beforeAll(async () => {
  // The agent of a worker that has stopped can be removed after a lease.
  platform = await startPlatform({ env: { ...env, LEASE_MS: '5000' }, workers: 0 })
  keyring = openTestKeyring(platform.databaseUrl)
  for (const tenant of tenants) callers[tenant] = await makeKey({ tenant, scopes: ['tasks:read', 'tasks:write', 'admin'] })
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

async function makeKey(request: Partial<CreateKey>): Promise<string> {
  return (await keyring.create({ tenant: 'default', scopes: ['worker'], ...request })).key
}

function post<T>(path: string, body: object, tenant: TenantName): Promise<Reply<T>> {
  return createClient(() => platform.url).post<T>(path, body, { authorization: `Bearer ${callers[tenant]}` })
}

async function get<T>(path: string, tenant: TenantName): Promise<T> {
  const response = await fetch(`${platform.url}${path}`, { headers: { authorization: `Bearer ${callers[tenant]}` } })
  return JSON.parse(await response.text())
}

async function createTask(agent: string, tenant: TenantName, extra: object = {}): Promise<Accepted> {
  const { status, body } = await post<Accepted>('/v1/tasks', { agent, input: 'hello', ...extra }, tenant)
  expect(status).toBe(201)
  return body
}

async function responseOf({ turn }: Accepted): Promise<string> {
  const isCompleted = async () => {
    const { rows } = await platform.pg.query('select status from turns where id = $1', [turn.id])
    return rows[0].status === 'completed'
  }
  await until(`turn ${turn.id} is completed`, isCompleted)
  const { rows } = await platform.pg.query("select content->>'text' as text from messages where task = $1 and author = 'agent'", [
    turn.task,
  ])
  return rows.map(({ text }) => text).join()
}

describe.each(['redis', 'http'] as const)('workers over %s', transport => {
  const withRedis = () => ({ redisUrl: inject('redisUrl'), redisPrefix: platform.keys.queuePrefix.slice(1, -':queue}'.length) })

  /** A worker whose agent responds with the name of the owner and of the tenant that it gets. */
  async function serve(
    name: string,
    owner: TenantName | 'shared',
    { params, url = platform.url }: { params?: z.ZodObject; url?: string } = {},
  ) {
    const key = await makeKey(owner === 'shared' ? { allTenants: true } : { tenant: owner })
    const description = `the ${name} of ${owner}`
    const about = { name, description }
    const agent = params
      ? defineAgent({ ...about, params, run: async turn => void (await turn.send(owner)) })
      : defineAgent({ ...about, run: async turn => void (await turn.send(owner)) })
    const where = transport === 'http' ? { transport } : withRedis()
    const worker = createWorker({ agents: [agent], url, ...where, key, log: silent, heartbeatMs: 200, drainMs: 0 })
    onTestFinished(() => worker.stop())
    await registered(name, owner)
    return worker
  }

  function registered(name: string, owner: TenantName | 'shared'): Promise<unknown> {
    return until(`the agent of ${owner} is registered`, async () => {
      const tenant = owner === 'shared' ? 'third' : owner
      const { data } = await get<{ data: { name: string; description: string }[] }>('/v1/agents', tenant)
      return data.some(known => known.name === name && known.description === `the ${name} of ${owner}`)
    })
  }

  function removed(name: string): Promise<unknown> {
    return until('the agent of acme is removed', async () => {
      const headers = { authorization: `Bearer ${callers.acme}` }
      return (await fetch(`${platform.url}/v1/agents/${name}`, { method: 'DELETE', headers })).status === 204
    })
  }

  test.each([
    ['acme', 'rival', 'shared'],
    ['shared', 'rival', 'acme'],
  ] as const)('run the turns of their own tenant alone: %s registers first, then %s, then %s', async (...owners) => {
    const name = `desk-${randomUUID()}`
    for (const owner of owners) await serve(name, owner)
    const wanted = Array.from({ length: 30 }, (_, i) => tenants[i % tenants.length] as TenantName)
    const accepted = await Promise.all(wanted.map(tenant => createTask(name, tenant)))
    const named = await Promise.all(tenants.map(tenant => createTask(name, tenant, { name: 'named' })))
    const responses = await Promise.all([...accepted, ...named].map(responseOf))
    expect(responses).toEqual([...wanted, ...tenants].map(tenant => (tenant === 'third' ? 'shared' : tenant)))
  })

  test('bring a schema and a description of their own, which every protocol shows to the caller of their tenant', async () => {
    const name = `desk-${randomUUID()}`
    await serve(name, 'shared')
    await serve(name, 'acme', { params: z.object({ size: z.number() }) })
    await serve(name, 'rival', { params: z.object({ color: z.string() }) })
    const statusOf = async (tenant: TenantName, params: object) => (await post('/v1/tasks', { agent: name, params }, tenant)).status
    expect([await statusOf('acme', { size: 1 }), await statusOf('acme', { color: 'red' })]).toEqual([201, 400])
    expect([await statusOf('rival', { size: 1 }), await statusOf('rival', { color: 'red' })]).toEqual([400, 201])
    expect(await statusOf('third', { color: 1 })).toBe(201)
    for (const [tenant, owner] of [
      ['acme', 'acme'],
      ['rival', 'rival'],
      ['third', 'shared'],
    ] as const) {
      const description = `the ${name} of ${owner}`
      const { data } = await get<{ data: { name: string; description: string; workers: number }[] }>('/v1/agents', tenant)
      expect(data.filter(agent => agent.name.startsWith(name))).toMatchObject([{ name, description, workers: 1 }])
      const workers = await get<{ data: { agents: string[] }[] }>('/v1/workers', tenant)
      expect(workers.data.filter(({ agents }) => agents.some(agent => agent.startsWith(name)))).toMatchObject([{ agents: [name] }])
      const models = await get<{ data: { id: string }[] }>('/openai/v1/models', tenant)
      expect(models.data.map(({ id }) => id).filter(id => id.startsWith(name))).toEqual([name])
      expect(await get(`/a2a/${name}/.well-known/agent-card.json`, tenant)).toMatchObject({ description })
      const tools = await post<{ result: { tools: { name: string; description: string }[] } }>(
        ...(['/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, tenant] as const),
      )
      expect(tools.body.result.tools.filter(tool => tool.name.startsWith(name))).toMatchObject([{ name, description }])
    }
  })

  test('take the turns of their tenant that wait for a shared agent, and leave them to it when their agent is removed', async () => {
    const name = `desk-${randomUUID()}`
    const shared = await serve(name, 'shared')
    await shared.stop()
    const waiting = await Promise.all([createTask(name, 'acme'), createTask(name, 'acme', { delayMs: 1 }), createTask(name, 'third')])
    const own = await serve(name, 'acme')
    expect(await Promise.all(waiting.slice(0, 2).map(responseOf))).toEqual(['acme', 'acme'])
    await own.stop()
    const later = await createTask(name, 'acme')
    await removed(name)
    await serve(name, 'shared')
    expect(await responseOf(later)).toBe('shared')
    expect(await responseOf(waiting[2] as Accepted)).toBe('shared')
  })

  test('take the turns of their tenant from another queue than before, when another tenant has taken the name meanwhile', async () => {
    const name = `desk-${randomUUID()}`
    const proxy = await startProxy(platform.url)
    onTestFinished(() => proxy.close())
    await serve(name, 'acme', { url: proxy.url })
    expect(await responseOf(await createTask(name, 'acme'))).toBe('acme')
    proxy.down()
    await removed(name)
    await serve(name, 'rival')
    proxy.up()
    await registered(name, 'acme')
    const accepted = await Promise.all([createTask(name, 'acme'), createTask(name, 'rival')])
    expect(await Promise.all(accepted.map(responseOf))).toEqual(['acme', 'rival'])
  })
})
