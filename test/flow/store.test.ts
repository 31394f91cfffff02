/** Memory above the tasks: what callers and turns keep there, from outside. */
import { randomUUID } from 'node:crypto'
import { createClient, type RivuletClient, type StoredValue } from '@rivulet/client'
import type { ClaimedTurn } from '@rivulet/contract/worker'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient as createApiClient, type ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const root = 'the-root-key-of-the-store'

let platform: Platform
let keyring: TestKeyring
let client: RivuletClient
let otherApi: RivuletClient
beforeAll(async () => {
  const env = { RIVULET_KEY: root, KEY_PEPPER: pepper, RIVULET_WORKER_KEY: root, MAX_STORE_BYTES_PER_TENANT: '300000' }
  platform = await startPlatform({ apis: 2, workers: 0, env })
  keyring = openTestKeyring(platform.databaseUrl)
  client = clientOf(root)
  otherApi = createClient({ url: platform.urls[1] ?? '', key: root })
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

const clientOf = (key: string) => createClient({ url: platform.url, key })

async function clientFor(scopes: ('tasks:read' | 'tasks:write')[], agents?: string[]): Promise<RivuletClient> {
  return clientOf((await keyring.create({ tenant: 'default', scopes, ...(agents && { agents }) })).key)
}

describe('a value', () => {
  test('is stored, merged, replaced and removed under its key, with a version that grows, at every API', async () => {
    const first = await client.store.put('customer:ada', 'prefs', { tone: 'warm', langs: ['en'] })
    expect(first).toEqual({
      scope: 'customer:ada',
      key: 'prefs',
      value: { tone: 'warm', langs: ['en'] },
      version: 1,
      updatedAt: first.updatedAt,
    })
    const merged = await otherApi.store.patch('customer:ada', 'prefs', { tone: null, name: 'Ada' })
    expect(merged).toMatchObject({ value: { langs: ['en'], name: 'Ada' }, version: 2 })
    expect(await client.store.get('customer:ada', 'prefs')).toEqual(merged)
    expect(await client.store.put('customer:ada', 'prefs', null)).toMatchObject({ value: null, version: 3 })
    await client.store.remove('customer:ada', 'prefs')
    await expect(client.store.get('customer:ada', 'prefs')).rejects.toMatchObject({ code: 'not_found' })
    await expect(client.store.remove('customer:ada', 'prefs')).rejects.toMatchObject({ code: 'not_found' })
    expect((await client.store.put('customer:ada', 'prefs', 1)).version).toBeGreaterThan(3)
  })

  test('is changed only in the version that the caller knows', async () => {
    const { version } = await client.store.put('tenant', 'counted', 0, { version: 0 })
    await expect(client.store.put('tenant', 'counted', 1, { version: 0 })).rejects.toMatchObject({ code: 'precondition_failed' })
    const second = await client.store.put('tenant', 'counted', 1, { version })
    await expect(client.store.patch('tenant', 'counted', { a: 1 }, { version })).rejects.toMatchObject({ code: 'precondition_failed' })
    await expect(client.store.remove('tenant', 'counted', { version })).rejects.toMatchObject({ code: 'precondition_failed' })
    await expect(client.store.put('tenant', 'counted', 1, { version })).rejects.toMatchObject({ code: 'precondition_failed' })
    await client.store.remove('tenant', 'counted', { version: second.version })
  })

  test('loses no change of callers that come together', async () => {
    await client.store.put('tenant', 'sum', 0)
    const add = async (api: RivuletClient): Promise<void> => {
      const { value, version } = await api.store.get('tenant', 'sum')
      try {
        await api.store.put('tenant', 'sum', Number(value) + 1, { version })
      } catch (error) {
        expect(error).toMatchObject({ code: 'precondition_failed' })
        await add(api)
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, i) => add(i % 2 ? client : otherApi)))
    await Promise.all(Array.from({ length: 8 }, (_, i) => client.store.patch('tenant', 'fields', { [`field ${i}`]: i })))
    expect(await client.store.get('tenant', 'sum')).toMatchObject({ value: 8 })
    expect(Object.keys((await client.store.get('tenant', 'fields')).value as object)).toHaveLength(8)
  })

  test('has an ETag, and If-None-Match keeps the first one, but for a repeated call', async () => {
    const put = (value: number, key: string) =>
      fetch(`${platform.url}/v1/store/tenant/first`, {
        method: 'PUT',
        body: JSON.stringify({ value }),
        headers: { authorization: `Bearer ${root}`, 'content-type': 'application/json', 'if-none-match': '*', 'idempotency-key': key },
      })
    const created = await put(1, 'first')
    expect([created.status, created.headers.get('etag')]).toEqual([201, `"${((await created.json()) as StoredValue).version}"`])
    expect((await put(1, 'second')).status).toBe(412)
    expect([(await put(1, 'first')).status, (await put(2, 'no spaces')).status]).toEqual([200, 400])
    expect(await client.store.get('tenant', 'first')).toMatchObject({ value: 1 })
  })
})

describe('a scope', () => {
  test('is listed in pages, by a prefix and by words, and cleared', async () => {
    const scope = 'customer:jürgen & söhne'
    for (const key of ['orders/2', 'orders/1', 'notes', 'Zebra']) await client.store.put(scope, key, { text: `about ${key}`, city: 'Köln' })
    const keysOf = async (query?: Parameters<typeof client.store.list>[1]) =>
      (await client.store.list(scope, query)).data.map(({ key }) => key)
    expect(await keysOf()).toEqual(['Zebra', 'notes', 'orders/1', 'orders/2'])
    expect(await keysOf({ prefix: 'orders/' })).toEqual(['orders/1', 'orders/2'])
    expect(await keysOf({ q: 'köln zebra' })).toEqual(['Zebra'])
    expect(await keysOf({ q: 'ote' })).toEqual(['notes'])
    expect(await keysOf({ q: 'nothing of that' })).toEqual([])
    const page = await client.store.list(scope, { limit: 3 })
    expect(page).toMatchObject({ data: [{ key: 'Zebra' }, { key: 'notes' }, { key: 'orders/1' }], nextCursor: 'orders/1' })
    expect(await client.store.list(scope, { limit: 3, cursor: 'orders/1' })).toMatchObject({
      data: [{ key: 'orders/2' }],
      nextCursor: null,
    })
    await client.store.clear(scope)
    expect(await client.store.list(scope)).toEqual({ data: [], nextCursor: null })
    await client.store.put(scope, 'two lines', 'first\nsecond')
    expect(await keysOf({ q: 'second' })).toEqual(['two lines'])
    const { version } = await client.store.get(scope, 'two lines')
    await client.store.clear(scope)
    expect((await client.store.put(scope, 'two lines', 'later')).version).toBeGreaterThan(version)
    await client.store.clear(scope)
  })

  test.each(['customers:ada', 'customer:', 'agent:', 'agent:no such name', 'Tenant', 'tenants', `customer:${'a'.repeat(95)}`])(
    'has one of three kinds of names: %s is refused',
    async scope => {
      await expect(client.store.put(scope, 'a', 1)).rejects.toMatchObject({
        code: scope.length > 100 ? 'url_too_long' : 'validation_failed',
      })
    },
  )
})

test('limits hold for a value, and for the tenant also when values come together', async () => {
  await expect(client.store.put('tenant', 'large', 'a'.repeat(64 * 1024))).rejects.toMatchObject({ code: 'value_too_large' })
  const codes = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      client.store.put(`customer:full ${i % 4}`, `${i}`, 'a'.repeat(60_000)).then(
        () => 'stored',
        ({ code }) => code as string,
      ),
    ),
  )
  expect(codes.toSorted()).toEqual([...Array(4).fill('store_full'), ...Array(4).fill('stored')])
  for (let i = 0; i < 4; i += 1) await client.store.clear(`customer:full ${i}`)
  await client.store.put('customer:full 0', 'again', 'a'.repeat(60_000))
  await client.store.clear('customer:full 0')
  const refused = '/v1/audit?action=request.refused&target=store_full'
  await until('the audit log has the refusals', async () => {
    const { body } = await createApiClient(() => platform.url).get<{ data: object[] }>(refused, { authorization: `Bearer ${root}` })
    return body.data.length > 0
  })
})

test('a key that is limited to agents uses the scopes of these, and one that may only write gets no value', async () => {
  const limited = await clientFor(['tasks:read', 'tasks:write'], ['desk'])
  expect(await limited.store.put('agent:desk', 'own', 1)).toMatchObject({ value: 1 })
  for (const scope of ['agent:other', 'customer:ada', 'tenant'])
    for (const call of [
      () => limited.store.put(scope, 'own', 1),
      () => limited.store.list(scope),
      () => limited.store.get(scope, 'own'),
      () => limited.store.clear(scope),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'forbidden' })
  const writer = await clientFor(['tasks:write'])
  await client.store.put('tenant', 'private', { word: 'secret' })
  expect(await writer.store.patch('tenant', 'private', { more: 1 })).toMatchObject({ value: null })
  await expect(writer.store.get('tenant', 'private')).rejects.toMatchObject({ code: 'forbidden' })
  expect(await client.store.get('tenant', 'private')).toMatchObject({ value: { word: 'secret', more: 1 } })
})

describe('a turn', () => {
  test('keeps values for its customer, its agent and its tenant, which later tasks find', async () => {
    const agent = defineAgent('remembering', async turn => {
      const visits = await turn.store.get<number>('customer', 'visits')
      await turn.store.put('customer', 'visits', (visits?.value ?? 0) + 1, { version: visits?.version ?? 0 })
      await turn.store.patch('agent', 'last', { customer: turn.text })
      const { data } = await turn.store.search('agent', turn.text)
      await turn.send(
        `${turn.text} ${(visits?.value ?? 0) + 1} ${data.length} ${(await turn.store.list('tenant', { prefix: 'no such' })).data.length}`,
      )
    })
    await startOwnWorker(platform, [agent], { key: root, callerKey: root })
    const run = async (customer: string) => (await client.run({ agent: 'remembering', input: customer, concurrencyKey: customer })).text
    expect([await run('eve'), await run('eve'), await run('bob')]).toEqual(['eve 1 1 0', 'eve 2 1 0', 'bob 1 1 0'])
    expect(await client.store.get('customer:eve', 'visits')).toMatchObject({ value: 2 })
    expect(await client.store.get('agent:remembering', 'last')).toMatchObject({ value: { customer: 'bob' } })
    for (const terms of [{}, { concurrencyKey: 'a'.repeat(92) }])
      await expect(client.run({ agent: 'remembering', input: 'no customer', ...terms })).rejects.toMatchObject({
        message: expect.stringContaining('concurrencyKey'),
      })
  })

  test('stores nothing for a worker that loses the turn while its call waits for another change of the scope', async () => {
    const [agent, worker] = ['fenced', randomUUID()]
    const call = async <T>(path: string, body: object) =>
      createApiClient(() => platform.url).post<T>(`/worker/v1/${path}`, body, { authorization: `Bearer ${root}` })
    await call('hello', { protocol: 1, worker, slots: 1, agents: [{ name: agent, description: '' }] })
    await client.tasks.create({ agent, input: 'go' })
    const { turn, claim } = await until('the turn is claimed', async () => {
      const { body } = await call<{ turns: ClaimedTurn[] }>('claim', { worker, agents: [agent], waitMs: 5_000 })
      return body.turns[0]
    })
    const put = (value: number) => call<ErrorReply>('store', { turn, claim, call: { action: 'put', scope: 'agent', key: 'kept', value } })
    expect((await put(1)).status).toBe(200)
    const connection = await platform.pg.connect()
    try {
      await connection.query('begin')
      await connection.query('select from memory_sizes where scope = $1 for update', [`agent:${agent}`])
      const late = put(2)
      await until('the call waits for the scope', async () => {
        const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return (await platform.pg.query(waiting)).rows.length > 0
      })
      await platform.pg.query("update turns set claim = 'of another worker' where id = $1", [turn])
      await connection.query('commit')
      const { status, body } = await late
      expect([status, body.error?.code]).toEqual([404, 'task_not_found'])
    } finally {
      connection.release(true)
    }
    expect(await client.store.get(`agent:${agent}`, 'kept')).toMatchObject({ value: 1 })
  })

  test('fails when the store is full, and does not wait for room', async () => {
    const agent = defineAgent('hoarding', async turn => {
      for (let i = 0; ; i += 1) await turn.store.put('agent', `piece ${i}`, 'a'.repeat(60_000))
    })
    await startOwnWorker(platform, [agent], { key: root, callerKey: root })
    await expect(client.run({ agent: 'hoarding', input: 'go' })).rejects.toMatchObject({ code: 'store_full' })
    await client.store.clear('agent:hoarding')

    const scopes = ['tasks:read', 'tasks:write', 'admin'] as const
    const { key } = await keyring.create({ tenant: 'acme', scopes: [...scopes] })
    await expect(clientOf(key).run({ agent: 'hoarding', input: 'go' })).rejects.toMatchObject({ code: 'store_full' })
    await until('the audit log of its tenant has the refusal, although the key of the worker is not of that tenant', async () => {
      const { data } = await clientOf(key).audit({ action: 'request.refused', target: 'store_full' })
      return data.length > 0
    })
  })
})
