/** Whose key a text is, against a real database. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase } from '../../../../test/support/engines/database.ts'
import { openTestKeyring, pepper } from '../../../../test/support/platform/keyring.ts'
import { openDatabase } from '../store/connection/database.ts'
import { believedMs, createKeyCheck } from './key-check.ts'

async function open() {
  const { url } = await createTestDatabase()
  const database = openDatabase({ url, onError: () => {} })
  const keyring = openTestKeyring(url)
  onTestFinished(async () => {
    vi.useRealTimers()
    await Promise.all([database.close(), keyring.close()])
  })
  const keys = createKeyCheck({ db: database.db, key: 'root of all', workerKey: 'for workers', pepper })
  return { url, database, keyring, keys }
}

test('a key is known by its text alone, and brings its tenant and scopes', async () => {
  const { keyring, keys } = await open()
  const { key, id } = await keyring.create({ tenant: 'acme', scopes: ['tasks:read'] })
  expect(key).toMatch(/^rvk_[0-9a-f]{16}_[\w-]{43}$/)
  expect(await keys.check(key)).toEqual({ tenant: 'acme', scopes: ['tasks:read'], key: id, expiresAt: null, isRoot: false })
})

test('the database holds neither the key nor its secret', async () => {
  const { keyring, database } = await open()
  const { key } = await keyring.create({ tenant: 'acme', scopes: ['tasks:read'] })
  const { rows } = await database.pool.query('select * from keys')
  expect(JSON.stringify(rows)).not.toContain(key.split('_').slice(2).join('_'))
})

test('the keys of the environment are of the default tenant: one may do everything, the other is a worker', async () => {
  const { keys } = await open()
  expect(await keys.check('root of all')).toMatchObject({
    tenant: 'default',
    scopes: ['tasks:read', 'tasks:write', 'admin', 'metrics', 'worker'],
  })
  expect(await keys.check('for workers')).toMatchObject({ tenant: 'default', scopes: ['worker'] })
})

test('nothing else is a key: not its id, another secret, another pepper, or what is revoked or expired', async () => {
  const { keyring, keys, database } = await open()
  const wanted = { tenant: 'acme', scopes: ['tasks:read' as const] }
  const good = await keyring.create(wanted)
  const revoked = await keyring.create(wanted)
  await keyring.revoke(revoked.id)
  const expired = await keyring.create({ ...wanted, expiresInSeconds: -1 }, pepper)
  const other = await keyring.create(wanted, `${pepper} of another installation`)
  const wrong = [
    '',
    'rvk_',
    good.id,
    `${good.key}x`,
    good.key.slice(0, -1),
    `rvk_${good.id}_${'A'.repeat(43)}`,
    `rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`,
  ]
  for (const text of [...wrong, revoked.key, expired.key, other.key]) expect([text, await keys.check(text)]).toEqual([text, null])
  const { rows } = await database.pool.query('select id from keys where last_used_at is not null')
  expect(rows).toEqual([])
})

test('whatever is wrong with a key, Postgres is asked once and a digest is compared', async () => {
  const { keyring, keys, database } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  await keyring.revoke(id)
  const asked = vi.spyOn(database.pool, 'connect')
  for (const text of ['nonsense', `rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`, `rvk_${id}_${'A'.repeat(43)}`, key]) {
    asked.mockClear()
    await keys.check(text)
    expect([text, asked.mock.calls.length]).toEqual([text, 1])
  }
})

test('what is no key is asked for once, and then not again for a while', async () => {
  const { keyring, keys, database } = await open()
  const revoked = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  await keyring.revoke(revoked.id)
  const asked = vi.spyOn(database.pool, 'connect')
  for (const text of ['nonsense', `rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`, revoked.key]) {
    asked.mockClear()
    for (let i = 0; i < 20; i += 1) expect(await keys.check(text)).toBeNull()
    expect([text, asked.mock.calls.length]).toEqual([text, 1])
  }
  asked.mockClear()
  for (let i = 0; i < 20; i += 1) expect(await keys.holder(revoked.id)).toBeNull()
  expect(asked.mock.calls.length).toBe(1)
})

test('thousands of made-up keys at once take one connection, and push no good key out', async () => {
  const { keyring, keys, database } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  await keys.check(key)
  const asked = vi.spyOn(database.pool, 'connect')
  const made = Array.from({ length: 11_000 }, () => `rvk_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`)
  expect((await Promise.all(made.map(text => keys.check(text)))).filter(found => found !== null)).toEqual([])
  expect(asked.mock.calls.length).toBe(made.length / 100)
  // One looks keys up, one has noted that the good one was used.
  expect(database.pool.totalCount).toBeLessThanOrEqual(2)
  asked.mockClear()
  expect([(await keys.check(key))?.key, asked.mock.calls.length]).toEqual([id, 0])
})

test('one query checks a key for all requests that arrive with it at once, and its result is cached for a few seconds', async () => {
  const { keyring, keys } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  const found = await Promise.all(Array.from({ length: 100 }, () => keys.check(key)))
  expect(found.filter(principal => principal?.key === id).length).toBe(100)
  await keyring.revoke(id)
  expect(await keys.check(key)).not.toBeNull()
  const now = performance.now()
  vi.spyOn(performance, 'now').mockImplementation(() => now + believedMs + 1)
  onTestFinished(() => void vi.restoreAllMocks())
  await expect.poll(() => keys.check(key)).toBeNull()
})

test('a check of cached keys sees a revocation at once, and so does every later request', async () => {
  const { keyring, keys } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  const root = (await keys.check('root of all'))?.key ?? ''
  await keys.check(key)
  expect(await keys.stillLive([id, root])).toEqual(new Set([id, root]))
  await keyring.revoke(id)
  expect(await keys.stillLive([id, root])).toEqual(new Set([root]))
  expect(await keys.check(key)).toBeNull()
})

test('a key that was changed is looked up again, also if a lookup began before the change', async () => {
  const { keyring, keys } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  expect(await keys.check(key)).not.toBeNull()
  await keyring.revoke(id)
  keys.forget(id)
  expect(await keys.check(key)).toBeNull()

  const other = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  const lookup = keys.check(other.key)
  keys.forget(other.id)
  expect(await lookup).not.toBeNull()
  await keyring.revoke(other.id)
  expect(await keys.check(other.key)).toBeNull()
})

test('nothing that is shown of a key of the environment comes from the key', async () => {
  const { database } = await open()
  const ids = async (key: string) => {
    const keys = createKeyCheck({ db: database.db, key, workerKey: `${key} for workers`, pepper })
    return [(await keys.check(key))?.key, (await keys.check(`${key} for workers`))?.key]
  }
  expect([await ids('one'), await ids('two')]).toEqual(Array(2).fill(['root', 'root-worker']))
})

test('a key of the pepper before is valid, and belongs to the current one after its first use', async () => {
  const { keyring, database } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  const next = 'a pepper that replaces the one of this test'
  const find = (deps: { pepper: string; oldPepper?: string }) => createKeyCheck({ db: database.db, ...deps }).check(key)
  expect(await find({ pepper: next })).toBeNull()
  expect(await find({ pepper: next, oldPepper: pepper })).toMatchObject({ key: id })
  await expect.poll(() => find({ pepper: next })).toMatchObject({ key: id })
  expect(await find({ pepper })).toBeNull()
  expect(await find({ pepper: next, oldPepper: pepper })).toMatchObject({ key: id })
  const other = await keyring.create({ tenant: 'acme', scopes: ['admin'] }, 'a pepper of another installation, not ours')
  expect(await createKeyCheck({ db: database.db, pepper: next, oldPepper: pepper }).check(other.key)).toBeNull()
})

test('without a pepper there are only the keys of the environment', async () => {
  const { keyring, database } = await open()
  const { id, key } = await keyring.create({ tenant: 'acme', scopes: ['admin'] })
  const keys = createKeyCheck({ db: database.db, key: 'root of all' })
  expect([await keys.check(key), await keys.holder(id)]).toEqual([null, null])
  expect(await keys.check('root of all')).not.toBeNull()
})
