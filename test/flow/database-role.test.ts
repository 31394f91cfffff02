/** The API as docker-compose.yml lets it log in: by a role that owns nothing, is no superuser, and is held by row-level security. */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { migrate } from '@rivulet/api/migrate'
import { createClient } from '@rivulet/client'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { rest, say } from '../support/agents/scripts.ts'
import { keyPrefix } from '../support/engines/database.ts'
import { hasPsql, runByPsql, runPsqlFile } from '../support/engines/psql-file.ts'
import { freePort } from '../support/free-port.ts'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { knobs, shortLease } from '../support/platform/platform.ts'
import { type PlatformProcess, startProcess } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'

const file = fileURLToPath(new URL('../../ops/postgres/roles.sql', import.meta.url))
const database = `roles_${randomBytes(4).toString('hex')}`
const password = randomBytes(16).toString('hex')
const ofOwner = urlOf({})
const ofApi = urlOf({ username: 'rivulet_api', password })
const processes: PlatformProcess[] = []
let keyring: TestKeyring
let shared: Record<string, string>
let url: string

beforeAll(async () => {
  await administer(`create database ${database}`)
  // In the order of docker-compose.yml, and once more, as with every `up`.
  await runPsqlFile(file, ofOwner, { POSTGRES_API_PASSWORD: 'an earlier one' })
  await migrate(ofOwner)
  if (hasPsql) runByPsql(file, ofOwner, { POSTGRES_API_PASSWORD: password })
  else await runPsqlFile(file, ofOwner, { POSTGRES_API_PASSWORD: password })

  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  shared = {
    ...{ ...knobs, ...shortLease },
    REDIS_URL: inject('redisUrl'),
    REDIS_PREFIX: keyPrefix().replace(/:$/, ''),
    RIVULET_EXAMPLE_AGENTS: 'on',
    RIVULET_WORKER_KEY: 'the-worker-key-of-this-test',
  }
  const api = startProcess('api', 'api', { ...shared, DATABASE_URL: ofApi, MIGRATE: 'off', PORT: port, KEY_PEPPER: pepper })
  processes.push(api)
  await api.said('api is listening')
  await startWorker()
  keyring = openTestKeyring(ofApi)
})
afterAll(async () => {
  await keyring?.close()
  for (const process of processes.reverse()) await process.kill('SIGTERM')
  await administer(`drop database ${database} with (force)`)
  await administer('drop role rivulet_api')
})

test('the login is neither a superuser nor free of row-level security, and owns nothing', async () => {
  const { rows } = await asApi().query(
    `select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, (select count(*)::int from pg_class where relowner = pg_roles.oid) as owned
     from pg_roles where rolname = current_user`,
  )
  expect(rows).toEqual([{ rolsuper: false, rolbypassrls: false, rolcreaterole: false, rolcreatedb: false, owned: 0 }])
})

test('the API works with it: tasks run, are sent to, canceled, listed and removed', async () => {
  const client = createClient({ url, key: await makeKey('acme') })
  const task = await client.tasks.create({ agent: 'echo', input: 'hello' })
  expect(await task.result()).toMatchObject({ status: 'completed', text: 'hello' })
  await task.send('again')
  expect(await task.result()).toMatchObject({ status: 'completed', text: 'again' })
  const later = await client.tasks.create({ agent: 'echo', input: 'never', delayMs: 600_000 })
  await later.cancel()
  expect((await client.tasks.list()).data.map(({ status }) => status).sort()).toEqual(['canceled', 'completed'])
  await task.remove()
  for (const { name, lines } of processes) expect([name, lines.filter(({ level }) => level >= 40)]).toEqual([name, []])
})

test('so does its reconciler: the turn of a worker that is killed goes on', async () => {
  const attempts = { 1: [say(0, 'begun'), rest(600_000)], 2: [say(0, 'gone on')] }
  const task = await createClient({ url, key: await makeKey('acme') }).tasks.create({ agent: 'scripted', params: { attempts } })
  await until('the turn runs', async () => (await task.detail()).task.status === 'running')
  await processes.pop()?.kill()
  await startWorker()
  expect(await task.result()).toMatchObject({ status: 'completed', text: 'gone on' })
})

describe('the wall between tenants', () => {
  test('holds for its connections, whatever they ask', async () => {
    for (const tenant of ['a', 'b']) {
      const client = createClient({ url, key: await makeKey(tenant) })
      await (await client.tasks.create({ agent: 'echo', input: tenant })).result()
    }
    const connection = asApi()
    const tenants = async () =>
      (await connection.query<{ tenant: string }>('select distinct tenant from tasks')).rows.map(row => row.tenant)
    expect(await tenants()).toEqual([])
    await connection.query("set rivulet.tenant = 'a'")
    expect(await tenants()).toEqual(['a'])
    await expect(connection.query("update tasks set tenant = 'b'")).rejects.toMatchObject({ code: '42501' })
    await connection.query('set role rivulet_tenant')
    expect(await tenants()).toEqual(['a'])
  })

  test.each([
    ['alter table tasks disable row level security', '42501'],
    ['drop policy tenant on tasks', '42501'],
    ['create table mine (id int)', '42501'],
    ['set role rivulet', '42501'],
    ['alter role rivulet_api bypassrls', '42501'],
    ['truncate tasks', '42501'],
    ["update drizzle.__drizzle_migrations set hash = ''", '42501'],
    ["copy tasks to program 'cat'", '42501'],
  ])('cannot be taken down by it: %s', async (sql, code) => {
    await expect(asApi().query(sql)).rejects.toMatchObject({ code })
  })
})

async function startWorker(): Promise<void> {
  const worker = startProcess('worker', 'worker', { ...shared, RIVULET_URL: url })
  processes.push(worker)
  await worker.said('worker is ready')
}

async function makeKey(tenant: string): Promise<string> {
  return (await keyring.create({ tenant, scopes: ['tasks:read', 'tasks:write'] })).key
}

function asApi(): pg.Client {
  const client = new pg.Client({ connectionString: ofApi })
  void client.connect()
  onTestFinished(() => client.end())
  return client
}

function urlOf(login: { username?: string; password?: string }): string {
  return Object.assign(new URL(inject('postgresUrl')), { pathname: `/${database}`, ...login }).href
}

async function administer(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  await client.query(sql)
  await client.end()
}
