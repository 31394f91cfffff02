/**
 * The second wall: what a connection of one tenant can do when a query forgets to ask whose rows they are. Everything here leaves the condition
 * out on purpose.
 */
import { randomUUID } from 'node:crypto'
import { createScheduleBody } from '@rivulet/contract/schedules'
import { createTaskBody } from '@rivulet/contract/tasks'
import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { forgetAudit, insertAudit } from '../access/audit.ts'
import { revokeKey } from '../access/keys.ts'
import { createVault } from '../access/vault.ts'
import { listTasks } from '../reads/list-tasks.ts'
import {
  audit,
  fileChunks,
  fileSums,
  files,
  idempotencyKeys,
  keys,
  looseFiles,
  memorySizes,
  memoryValues,
  messages,
  outbox,
  scheduleFiles,
  schedules,
  secrets,
  steps,
  taskFiles,
  taskSecrets,
  tasks,
  tokenRevocations,
  turns,
} from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { rewrapSecrets, storeSecrets } from '../tasks/task-secrets.ts'
import { type DatabaseHandle, openDatabase, sqlStateOf } from './database.ts'
import { migrate } from './migrate.ts'
import { whyRowsAreOpen } from './row-security.ts'

const ofTenants = {
  audit,
  tasks,
  turns,
  messages,
  idempotencyKeys,
  outbox,
  steps,
  tokenRevocations,
  files,
  taskFiles,
  scheduleFiles,
  looseFiles,
  fileChunks,
  fileSums,
  taskSecrets,
  memorySizes,
  memoryValues,
}

const vault = createVault({ key: 'a'.repeat(32) })

let url: string
beforeAll(async () => {
  url = (await createTestDatabase()).url
  const database = openDatabase({ url, onError: () => {} })
  await database.db.execute(sql`insert into agents values ('echo', '')`)
  for (const tenant of ['a', 'b']) await addTask(database, tenant)
  await database.close()
})

function open(at = url): DatabaseHandle {
  const database = openDatabase({ url: at, onError: () => {} })
  onTestFinished(() => database.close())
  return database
}

/** A task with a row in every table that is about it. */
async function addTask(database: DatabaseHandle, tenant: string): Promise<string> {
  const request = createTaskBody.parse({ agent: 'echo', name: 'same' })
  const { task, turn } = await database.databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))
  const message = { task: task.id, tenant, index: 0, turn: 1, attempt: 1, author: 'user' as const, metadata: {}, createdAt: new Date() }
  await database.db.insert(messages).values({ ...message, content: { type: 'text', text: tenant, format: 'plain' }, status: 'complete' })
  await database.databaseFor(tenant).insert(memorySizes).values({ tenant, scope: 'tenant' })
  const value = { scope: 'tenant', key: 'same', version: 1, value: tenant, words: sql`to_tsvector('simple', ${tenant})`, bytes: 1 }
  await database
    .databaseFor(tenant)
    .insert(memoryValues)
    .values({ tenant, ...value })
  await database.db.insert(steps).values({ turn: turn?.id ?? '', name: 'one', memory: '{}' })
  await database.databaseFor(tenant).transaction(tx => storeSecrets(tx, task, turn, vault.seal(tenant, { KEY: tenant })))
  await database.db.insert(keys).values({ id: tenant, tenant, name: '', scopes: ['admin'], digest: '' })
  await database.databaseFor(tenant).insert(idempotencyKeys).values({ tenant, key: 'same', fingerprint: tenant })
  await database.databaseFor(tenant).insert(tokenRevocations).values({ tenant, task: task.id, subject: '', revokedAt: new Date() })
  const file = { id: randomUUID(), tenant, mimeType: 'text/plain', size: 1, sha256: '', store: 'postgres' as const }
  await database.databaseFor(tenant).insert(files).values(file)
  await database.databaseFor(tenant).insert(taskFiles).values({ task: task.id, tenant, file: file.id })
  const schedule = { id: randomUUID(), tenant, status: 'paused' as const }
  await database
    .databaseFor(tenant)
    .insert(schedules)
    .values({ ...schedule, request: createScheduleBody.parse({ agent: 'echo', cron: '0 0 1 1 *' }) })
  await database.databaseFor(tenant).insert(scheduleFiles).values({ schedule: schedule.id, tenant, file: file.id })
  await database
    .databaseFor(tenant)
    .insert(fileChunks)
    .values({ file: file.id, number: 0, tenant, bytes: Buffer.from('a') })
  await database.databaseFor(tenant).insert(looseFiles).values({ id: randomUUID(), tenant, store: 'postgres', touchedAt: new Date() })
  await database
    .databaseFor(tenant)
    .transaction(tx => insertAudit(tx, tenant, { via: 'open' }, { action: 'task.canceled', target: task.id }))
  return task.id
}

describe('a tenant that forgets to say whose rows it wants', () => {
  test.each(Object.entries(ofTenants))('sees its own of %s', async (_, table) => {
    const { db, databaseFor } = open()
    expect((await db.select().from(table)).length).toBe(2)
    const rows = await databaseFor('a').select().from(table)
    expect(rows.length).toBe(1)
    expect(JSON.stringify(rows)).not.toContain('"tenant":"b"')
    expect(await databaseFor('c').select().from(table)).toEqual([])
  })

  test('changes and removes its own', async () => {
    const { db, databaseFor } = open()
    const changed = await databaseFor('a').update(tasks).set({ priority: 7 }).returning()
    expect(changed.map(({ tenant }) => tenant)).toEqual(['a'])
    await addTask({ db, databaseFor } as DatabaseHandle, 'gone')
    await databaseFor('gone').delete(tasks)
    const left = await db.select({ tenant: tasks.tenant }).from(tasks).orderBy(tasks.tenant)
    expect(left.map(({ tenant }) => tenant)).toEqual(['a', 'b'])
    for (const table of [keys, idempotencyKeys, looseFiles, fileChunks, fileSums, audit]) await db.delete(table).where(sql`tenant = 'gone'`)
  })

  test('can neither add a row for another nor give one away', async () => {
    const { db, databaseFor } = open()
    const foreign = { tenant: 'b', key: randomUUID(), fingerprint: '' }
    expect(await stateOf(databaseFor('a').insert(idempotencyKeys).values(foreign))).toBe('42501')
    expect(await stateOf(databaseFor('a').update(tasks).set({ tenant: 'b' }))).toBe('42501')
    // The default of the column is a tenant like any other.
    expect(await stateOf(databaseFor('a').insert(idempotencyKeys).values({ key: randomUUID(), fingerprint: '' }))).toBe('42501')
    const [other] = await db.select().from(turns).where(sql`tenant = 'b'`)
    expect(
      await stateOf(
        databaseFor('a')
          .insert(outbox)
          .values({ turn: other?.id ?? '' }),
      ),
    ).toBe('42501')
  })

  test('cannot read keys, and cannot become another tenant', async () => {
    const { databaseFor } = open()
    for (const table of [keys, secrets]) expect(await stateOf(databaseFor('a').select().from(table))).toBe('42501')
    const { rows } = await databaseFor('a').execute(
      sql`select current_user as name, rolsuper or rolbypassrls as free from pg_roles where rolname = current_user`,
    )
    expect(rows).toEqual([{ name: 'rivulet_tenant', free: false }])
  })

  test('can neither change nor remove an entry of the audit log', async () => {
    const { databaseFor } = open()
    expect(await stateOf(databaseFor('a').update(audit).set({ target: 'b' }))).toBe('42501')
    expect(await stateOf(databaseFor('a').delete(audit))).toBe('42501')
  })

  test('is held by a condition of ours as well: a connection of the server itself lists only what is asked for', async () => {
    const { db } = open()
    const query = { agent: undefined, status: undefined, name: undefined, cursor: undefined, limit: 10, metadata: {} }
    expect((await listTasks(db, 'a', query, 1024)).data.length).toBe(1)
    expect((await listTasks(db, '*', query, 1024)).data.length).toBe(2)
  })
})

test('an entry of the audit log and its change are one transaction, and the entry goes after its retention', async () => {
  const { db } = open()
  const unwritable = async () => Promise.reject(new Error('no entry'))
  await expect(revokeKey(db, 'a', 'a', unwritable)).rejects.toThrow('no entry')
  const [key] = await db.select().from(keys).where(sql`id = 'a'`)
  expect(key?.revokedAt).toBeNull()
  await db.transaction(tx => insertAudit(tx, 'old', { via: 'open' }, { action: 'task.deleted', target: 'a' }))
  await db.update(audit).set({ at: sql`now() - interval '2 days'` }).where(sql`tenant = 'old'`)
  expect(await forgetAudit(db, { keptMs: 86_400_000, limit: 10 })).toBe(false)
  const left = await db.select({ tenant: audit.tenant }).from(audit).orderBy(audit.tenant)
  expect(left.map(({ tenant }) => tenant)).toEqual(['a', 'b'])
})

test('a rotation of SECRETS_KEY moves every row to the new key, which alone opens it then', async () => {
  const { db } = open()
  const { oldKeyName, rewrap } = createVault({ key: 'b'.repeat(32), oldKey: 'a'.repeat(32) })
  const move = (limit: number) => rewrapSecrets(db, oldKeyName ?? '', rewrap, limit)
  expect([await move(1), await move(10), await move(10)]).toEqual([1, 1, 0])
  const after = createVault({ key: 'b'.repeat(32) })
  const rows = await db.select().from(taskSecrets).orderBy(taskSecrets.tenant)
  expect(rows.map(row => [after.open(row.tenant, row), vault.open(row.tenant, row)])).toEqual([
    [{ KEY: 'a' }, null],
    [{ KEY: 'b' }, null],
  ])
})

test('no task can refer to a file of another tenant, even where row-level security does not look', async () => {
  const { db } = open()
  const [task] = await db.select().from(tasks).where(sql`tenant = 'a'`)
  const [file] = await db.select().from(files).where(sql`tenant = 'b'`)
  const foreign = { task: task?.id ?? '', tenant: 'a', file: file?.id ?? '' }
  expect(await stateOf(db.insert(taskFiles).values(foreign))).toBe('23503')
})

test('a connection that says nothing of a tenant sees nothing', async () => {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('set role rivulet_tenant')
  for (const table of [
    'tasks',
    'turns',
    'messages',
    'idempotency_keys',
    'outbox',
    'steps',
    'token_revocations',
    'files',
    'task_files',
    'schedule_files',
    'loose_files',
    'file_chunks',
    'audit',
    'task_secrets',
  ])
    expect((await client.query(`select from ${table}`)).rows).toEqual([])
})

test('an owner that is not a superuser is restricted as well, and may migrate', async () => {
  const owned = await createDatabaseOwnedBy('plain_owner')
  await migrate(owned)
  const { db, databaseFor } = open(owned)
  await db.execute(sql`insert into agents values ('echo', '')`)
  for (const tenant of ['a', 'b']) await addTask({ db, databaseFor } as DatabaseHandle, tenant)
  expect((await db.select().from(tasks)).length).toBe(2)
  expect((await databaseFor('a').select().from(tasks)).length).toBe(1)
})

describe('an API does not start', () => {
  const reasonFor = (at: string) => whyRowsAreOpen(open(at).pools.tenants)

  test('as a login that is exempt from row-level security, unless it can take the role of tenants', async () => {
    const owned = await createDatabaseOwnedBy('exempt_owner')
    await migrate(owned)
    expect(await reasonFor(owned)).toBeNull()
    expect(await reasonFor(url)).toBeNull()
    await administer('alter role exempt_owner bypassrls')
    expect(await reasonFor(owned)).toMatch(/user exempt_owner .* is exempt .*rivulet_tenant/)
    await administer('grant rivulet_tenant to exempt_owner')
    expect(await reasonFor(owned)).toBeNull()
  })

  test('with a table of tenants that row-level security does not cover', async () => {
    const owned = await createDatabaseOwnedBy('careless_owner')
    await migrate(owned)
    const { db } = open(owned)
    await db.execute(sql`alter table messages no force row level security`)
    await db.execute(sql`alter table tasks disable row level security`)
    expect(await reasonFor(owned)).toMatch(/is off .*\(messages, tasks\)/)
  })
})

test('every table has row-level security, except the shared ones', async () => {
  const { db } = open()
  const { rows } = await db.execute<{ name: string; held: boolean }>(
    sql`select relname as name, relrowsecurity and relforcerowsecurity and exists (select from pg_policy where polrelid = pg_class.oid) as held
        from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname`,
  )
  expect(rows.filter(({ held }) => !held).map(({ name }) => name)).toEqual(['workers'])
})

test('the tenant of a connection is set once, and again only when it changes', async () => {
  const { databaseFor, pool } = open()
  const asked = vi.spyOn(Client.prototype, 'query')
  onTestFinished(() => void asked.mockRestore())
  const tellings = () => asked.mock.calls.filter(([text]) => String(text).includes("'rivulet.tenant'")).length
  for (let i = 0; i < 5; i += 1) await databaseFor('a').select().from(tasks)
  expect(tellings()).toBe(1)
  await databaseFor('a').transaction(async tx => void (await tx.select().from(tasks)))
  expect(tellings()).toBe(1)
  await databaseFor('b').select().from(tasks)
  await databaseFor('a').select().from(tasks)
  expect(tellings()).toBe(3)
  expect(pool.totalCount).toBe(0)
})

test('many tenants at once never see each other through connections that they share', async () => {
  const { databaseFor } = open()
  const looks = Array.from({ length: 90 }, async (_, i) => {
    const tenant = ['a', 'b', 'c'][i % 3] ?? ''
    const rows =
      i % 2 ? await databaseFor(tenant).select().from(tasks) : await databaseFor(tenant).transaction(tx => tx.select().from(tasks))
    return rows.every(row => row.tenant === tenant) && rows.length === (tenant === 'c' ? 0 : 1)
  })
  expect((await Promise.all(looks)).filter(isRight => !isRight)).toEqual([])
})

test('a connection that breaks as a transaction begins is not missing afterwards', async () => {
  const { databaseFor, close } = openDatabase({ url, onError: () => {} })
  await databaseFor('a').select().from(tasks)
  vi.spyOn(Client.prototype, 'query').mockImplementationOnce(function (this: Client) {
    Reflect.get(this, 'connection').stream.destroy()
    return Promise.reject(new Error('gone'))
  } as never)
  onTestFinished(() => void vi.restoreAllMocks())
  await expect(databaseFor('a').transaction(async () => {})).rejects.toThrow()
  // Waits for what was lent.
  await close()
})

async function stateOf(work: PromiseLike<unknown>): Promise<string | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    return sqlStateOf(error)
  }
}

async function administer(statement: string): Promise<void> {
  const admin = new Client({ connectionString: inject('postgresUrl') })
  await admin.connect()
  await admin.query(statement)
  await admin.end()
}

async function createDatabaseOwnedBy(role: string): Promise<string> {
  const admin = new Client({ connectionString: inject('postgresUrl') })
  await admin.connect()
  const name = `owned_${role}_${process.pid}_${Date.now()}`
  await admin.query(`create role ${role} login password 'x' nosuperuser nocreaterole`)
  await admin.query(`create database ${name} owner ${role}`)
  onTestFinished(async () => {
    await admin.query(`drop database ${name} with (force)`)
    await admin.query(`drop role ${role}`)
    await admin.end()
  })
  return Object.assign(new URL(inject('postgresUrl')), { pathname: `/${name}`, username: role, password: 'x' }).href
}
