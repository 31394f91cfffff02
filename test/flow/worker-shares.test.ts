/** The share of an API process that the workers of one tenant have: a rate of calls, and two calls and four heartbeats under way at a time. */
import { randomUUID } from 'node:crypto'
import type { ClaimResult } from '@rivulet/contract/internal'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openTestKeyring, pepper } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { type Accepted, createClient, type ErrorReply, type Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', KEY_PEPPER: pepper, LEASE_MS: '600000' }
/** Never refilled while the test runs. */
const burst = 40

let platform: Platform
const keys = { ofAcme: '', alsoOfAcme: '', ofRival: '', everywhere: '', acmeTasks: '' }

beforeAll(async () => {
  const rates = { RATE_LIMIT_TENANT_PER_SECOND: '0.1', RATE_LIMIT_TENANT_BURST: String(burst) }
  platform = await startPlatform({ env: { ...env, ...rates }, workers: 0 })
  const keyring = openTestKeyring(platform.databaseUrl)
  const workerKey = async (tenant: string) => (await keyring.create({ tenant, scopes: ['worker'] })).key
  keys.ofAcme = await workerKey('acme')
  keys.alsoOfAcme = await workerKey('acme')
  keys.ofRival = await workerKey('rival')
  keys.everywhere = (await keyring.create({ tenant: 'default', scopes: ['worker'], allTenants: true })).key
  keys.acmeTasks = (await keyring.create({ tenant: 'acme', scopes: ['tasks:read', 'tasks:write'] })).key
  await keyring.close()
})
afterAll(() => platform.close())

function post<T>(path: string, body: object, key: string): Promise<Reply<T>> {
  return createClient(() => platform.url).post<T>(path, body, { authorization: `Bearer ${key}` })
}

const call = <T = unknown>(name: string, body: object, key: string) => post<T>(`/internal/${name}`, body, key)
const waits = (key: string) => call('waits', { turnId: randomUUID(), claimId: 'a' }, key)
const heartbeat = (key: string) => call('heartbeat', { worker: 'w', turns: [] }, key)

test('two calls of a tenant’s workers are under way at a time; a third waits, and neither a heartbeat nor another tenant does', async () => {
  const agent = `own-${randomUUID()}`
  await call('hello', { worker: 'greeter', agents: [{ name: agent, description: '' }] }, keys.everywhere)
  const [one, two] = await Promise.all([claimed(agent), claimed(agent)])
  const locking = await platform.pg.connect()
  onTestFinished(() => locking.release(true))
  await locking.query('begin')
  await locking.query('select from tasks where id = any($1) for update', [[one.task, two.task]])
  const released = [one, two].map(({ turnId, epoch, claimId }) => call('release', { turnId, epoch, claimId }, keys.ofAcme))
  await until('both calls wait for the lock of their task', async () => {
    const { rows } = await platform.pg.query(
      "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    )
    return rows.length === 2
  })
  let hasReplied = false
  const third = waits(keys.alsoOfAcme).finally(() => {
    hasReplied = true
  })
  const others = [keys.ofRival, keys.everywhere].flatMap(key => [waits, waits, heartbeat].map(ask => () => ask(key)))
  for (const ask of [...others, () => heartbeat(keys.ofAcme), ...others]) expect((await ask()).status).toBe(200)
  expect(hasReplied).toBe(false)
  await locking.query('rollback')
  expect((await third).status).toBe(200)
  for (const { status, body } of await Promise.all(released)) expect([status, body]).toEqual([200, { result: 'released' }])
})

test('a worker whose hello takes long does not hold up the heartbeats of its tenant', async () => {
  const hello = { worker: `w-${randomUUID()}`, agents: [] }
  expect((await call('hello', hello, keys.ofAcme)).status).toBe(200)
  const locking = await platform.pg.connect()
  onTestFinished(() => locking.release(true))
  await locking.query('begin')
  await locking.query('select from workers where id = $1 for update', [hello.worker])
  let hasReplied = false
  const waiting = call('hello', hello, keys.ofAcme).finally(() => {
    hasReplied = true
  })
  await until('the hello waits for the row of its worker', async () => {
    const { rowCount } = await platform.pg.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    )
    return rowCount === 1
  })
  expect([(await heartbeat(keys.ofAcme)).status, hasReplied]).toEqual([200, false])
  await locking.query('rollback')
  await waiting
})

test('the calls of a tenant’s workers have a rate, apart from that of its callers and of other tenants', async () => {
  const statuses: number[] = []
  let last: Reply<ErrorReply> | null = null
  for (let i = 0; i <= burst; i += 1) {
    last = (await heartbeat(i % 2 ? keys.ofAcme : keys.alsoOfAcme)) as Reply<ErrorReply>
    statuses.push(last.status)
  }
  expect([statuses[0], statuses.at(-1)]).toEqual([200, 429])
  expect([last?.body.error.code, last?.body.error.message]).toEqual([
    'rate_limited',
    expect.stringContaining('RATE_LIMIT_TENANT_PER_SECOND'),
  ])
  expect((await heartbeat(keys.ofRival)).status).toBe(200)
  const list = await fetch(`${platform.url}/v1/tasks`, { headers: { authorization: `Bearer ${keys.acmeTasks}` } })
  expect(list.status).toBe(200)
  for (let i = 0; i <= burst; i += 1) expect((await heartbeat(keys.everywhere)).status).toBe(200)
})

async function claimed(agent: string) {
  const { body } = await post<Accepted>('/v1/tasks', { agent, input: 'go' }, keys.acmeTasks)
  const [turnId, claimId] = [body.turn.id, randomUUID()]
  return until('the turn is claimed', async () => {
    const { body: claim } = await call<ClaimResult>('claim', { worker: 'w', turnId, claimId }, keys.everywhere)
    return claim.result === 'claimed' && { task: body.task.id, turnId, claimId, epoch: claim.epoch }
  })
}
