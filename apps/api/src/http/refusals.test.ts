/** The audit entries of refused requests, in a real database. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../test/open-store.ts'
import type { DatabaseHandle } from '../store/connection/database.ts'
import { audit } from '../store/schema.ts'
import { networkOf, type Refusal, Refusals } from './refusals.ts'

let store: DatabaseHandle
let refusals: Refusals
let errors: unknown[]
beforeEach(async () => {
  store = await openStore()
  errors = []
  refusals = new Refusals({ db: store.db, onEntry: () => {}, onError: error => errors.push(error) })
})
afterEach(async () => {
  await refusals.close()
  await store.close()
})

const refusal = (subject: string, code: Refusal['code'] = 'forbidden', tenant = 'acme'): Refusal => ({
  ...{ tenant, code, route: 'POST /v1/tasks' },
  caller: { via: 'token', key: 'k', subject, address: '127.0.0.1' },
})

const entries = () => store.db.select().from(audit)
const countOf = (rows: { details: { count?: unknown } }[]) => rows.reduce((sum, { details }) => sum + Number(details.count), 0)

test('a flood of one caller is one entry for each code, and a second one for what came after it', async () => {
  for (let request = 0; request < 1_000; request += 1) refusals.add(refusal('anna', request % 2 ? 'forbidden' : 'rate_limited'))
  await refusals.write()
  expect((await entries()).map(({ target, details }) => [target, details]).sort()).toEqual([
    ['forbidden', { count: 500, routes: ['POST /v1/tasks'] }],
    ['rate_limited', { count: 500, routes: ['POST /v1/tasks'] }],
  ])
  for (let request = 0; request < 10; request += 1) refusals.add(refusal('anna'))
  await refusals.write()
  expect(await entries()).toHaveLength(2)
  await refusals.write({ all: true })
  expect([(await entries()).length, countOf(await entries())]).toEqual([3, 1_010])
})

test('a flood of a thousand callers of one tenant has a bounded number of entries, counts each request, and leaves room for another tenant', async () => {
  for (let caller = 0; caller < 1_000; caller += 1) refusals.add(refusal(`person ${caller}`))
  refusals.add(refusal('ben', 'forbidden', 'rival'))
  await refusals.write()
  const rows = await entries()
  const shared = rows.filter(({ subject }) => subject === null)
  expect([rows.length, countOf(rows)]).toEqual([52, 1_001])
  expect(shared).toMatchObject([{ tenant: 'acme', via: 'token', key: null, address: null, details: { count: 950 } }])
  expect(rows.filter(({ tenant }) => tenant === 'rival')).toMatchObject([{ subject: 'ben', details: { count: 1 } }])
})

test('what Postgres did not take is written later', async () => {
  await store.db.execute('alter table audit rename to audit_away')
  refusals.add(refusal('anna'))
  await refusals.write()
  expect(errors).toHaveLength(1)
  await store.db.execute('alter table audit_away rename to audit')
  await refusals.write({ all: true })
  expect((await entries()).map(({ details }) => details)).toEqual([{ count: 1, routes: ['POST /v1/tasks'] }])
})

test('an entry names the routes of the refusals that came while the one before it was written', async () => {
  refusals.add(refusal('anna'))
  const written = refusals.write()
  // The write begins in a microtask, and is under way in the next round of the event loop.
  await new Promise(setImmediate)
  refusals.add({ ...refusal('anna'), route: 'POST /v1/keys' })
  await written
  await refusals.write({ all: true })
  expect((await entries()).map(({ details }) => details)).toEqual([
    { count: 1, routes: ['POST /v1/tasks'] },
    { count: 1, routes: ['POST /v1/keys'] },
  ])
})

test('the callers of a tenant that share an entry share it with those of the same kind alone', async () => {
  for (let caller = 0; caller < 60; caller += 1) refusals.add(refusal(`person ${caller}`))
  refusals.add({ ...refusal('-'), caller: { via: 'key', key: 'k', address: '127.0.0.1' } })
  await refusals.write()
  const shared = (await entries()).filter(({ key }) => key === null)
  expect(shared.map(({ via, details }) => [via, details.count]).sort()).toEqual([
    ['key', 1],
    ['token', 10],
  ])
})

test('the addresses of one IPv6 network are one caller, and its entry names the network once there were two', async () => {
  const from = (address: string): Refusal => ({
    ...{ tenant: '*', code: 'unauthorized', route: 'GET /v1/tasks' },
    caller: { via: 'none', address },
  })
  for (let host = 1; host <= 1_000; host += 1) refusals.add(from(`2001:db8:0:7::${host.toString(16)}`))
  for (const address of ['2001:db8:0:7:1:2:3:4', '2001:db8::7:0:0:0:9', '2001:db8:0:8::1', '::ffff:192.0.2.1', '::ffff:192.0.2.2'])
    refusals.add(from(address))
  await refusals.write()
  const written = (await entries()).map(({ address, details }) => [address, details.count]).sort()
  expect(written).toEqual([
    ['2001:db8:0:7::/64', 1_002],
    ['2001:db8:0:8::1', 1],
    ['::ffff:192.0.2.1', 1],
    ['::ffff:192.0.2.2', 1],
  ])
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::1', '::1'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['2001:db8:1::', '2001:db8:1:0::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2:3:4:5::', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::1', '2001:db8:1:2::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
])('the network of %s is %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

test('changes that a caller repeats have an entry of their own once a minute, and one for all others', async () => {
  const caller = { via: 'key', key: 'k', address: '127.0.0.1' } as const
  const set = (target: string, version: number, key = 'k') =>
    refusals.isRepeated('acme', { ...caller, key }, { action: 'state.set', target, details: { version } })
  expect([set('one', 1), set('one', 2), set('one', 3), set('two', 1), set('one', 4, 'other')]).toEqual([false, true, true, false, false])
  expect(refusals.isRepeated('rival', caller, { action: 'state.set', target: 'one' })).toBe(false)
  for (const _ of [1, 2]) expect(refusals.isRepeated('acme', caller, { action: 'task.deleted', target: 'one' })).toBe(false)
  await refusals.write()
  expect(await entries()).toEqual([])
  await refusals.write({ all: true })
  expect(await entries()).toMatchObject([
    { tenant: 'acme', action: 'state.set', target: 'one', key: 'k', details: { version: 3, count: 2 } },
  ])
})

test('changes of more targets than are remembered have an entry each', async () => {
  const send = (i: number) => refusals.isRepeated('acme', { via: 'open' }, { action: 'signal.sent', target: `task ${i}` })
  for (let i = 0; i < 1_010; i += 1) expect(send(i)).toBe(false)
  expect([send(0), send(999), send(1_000)]).toEqual([true, true, false])
  await refusals.write({ all: true })
  expect(await entries()).toHaveLength(2)
})
