/** The tables in `schema.ts` and the SQL in `migrations/` say the same, and migrations block no table for long. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { is } from 'drizzle-orm'
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core'
import { Client } from 'pg'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { until } from '../../../../../test/support/until.ts'
import * as schema from '../schema.ts'
import { migrate } from './migrate.ts'

const folder = fileURLToPath(new URL('../../../../../migrations', import.meta.url))

test('the schema has not drifted from the migrations: there is nothing to generate', async () => {
  const journal = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8'))
  const latest = String(journal.entries.at(-1).idx).padStart(4, '0')
  const snapshot = JSON.parse(readFileSync(join(folder, `meta/${latest}_snapshot.json`), 'utf8'))
  expect(await generateMigration(snapshot, generateDrizzleJson(schema, snapshot.id, undefined, 'snake_case'))).toEqual([])
})

test('every migration in the journal has its SQL, and every SQL is in the journal', () => {
  const journal = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8'))
  expect(journal.entries.map(({ tag }: { tag: string }) => `${tag}.sql`)).toEqual(files())
})

test('ten processes that migrate the same empty database at once all succeed, and it is migrated once', async () => {
  const url = await createEmptyDatabase()
  await Promise.all(Array.from({ length: 10 }, () => migrate(url)))
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('select count(*)::int from drizzle.__drizzle_migrations')
  await client.end()
  expect(rows).toEqual([{ count: files().length }])
})

test('a database that is up to date stays as it is', async () => {
  const { url } = await createTestDatabase()
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query("insert into agents (name, description) values ('kept', '')")
  await migrate(url)
  const { rows } = await client.query('select name from agents')
  await client.end()
  expect(rows).toEqual([{ name: 'kept' }])
})

test('a migration that waits for a table reports it, and does not block the statements behind it for longer than a second', async () => {
  const url = await createEmptyDatabase()
  const [holder, other] = [await open(url), await open(url)]
  const statements = ['create table big (id int)', 'alter table big add column name text']
  await migrate(url, { folder: folderOf(statements.slice(0, 1)) })
  await holder.query('begin')
  await holder.query('select from big')
  const onBlocked = vi.fn()
  const migrated = migrate(url, { folder: folderOf(statements), onBlocked })
  await untilBlocked(other)
  await other.query('select from big')
  await until('the migration reports it', () => onBlocked.mock.calls.length > 0)
  await holder.query('commit')
  await migrated
  await other.query('select name from big')
})

test('a migration that Postgres ends because of a deadlock starts again', async () => {
  const url = await createEmptyDatabase()
  // A sequence keeps its number when the transaction fails.
  const failOnce = "do $$ begin if nextval('tries') = 1 then raise sqlstate '40P01'; end if; end $$"
  const onBlocked = vi.fn()
  await migrate(url, { folder: folderOf(['create sequence tries']) })
  await migrate(url, { folder: folderOf(['create sequence tries', failOnce]), onBlocked })
  expect(onBlocked).toHaveBeenCalledOnce()
})

test('files are summed while an upload has read them and adds one, without a deadlock', async () => {
  const url = await createEmptyDatabase()
  const [migrator, upload, other] = [await open(url), await open(url), await open(url)]
  for (const file of files().filter(name => name < '0040')) await migrator.query(readFileSync(join(folder, file), 'utf8'))
  await migrator.query('create index files_tenant_size on files (tenant, size)')
  await upload.query('begin')
  await upload.query('select from files')
  const add = async () => {
    await untilBlocked(other)
    await upload.query('lock table files in row exclusive mode')
    await upload.query('commit')
  }
  await Promise.all([migrator.query(readFileSync(join(folder, '0040_file_sums.sql'), 'utf8')), add()])
  expect((await other.query('select tenant from file_sums')).rows).toEqual([])
})

test('every index of the schema is in the database and valid, also one that a process began to build and left', async () => {
  const url = await createEmptyDatabase()
  await migrate(url)
  const client = await open(url)
  const validIndexes = async () => {
    const { rows } = await client.query<{ name: string }>('select indexrelid::regclass::text as name from pg_index where indisvalid')
    return new Set(rows.map(({ name }) => name))
  }
  const wanted = Object.values(schema).flatMap(table =>
    is(table, PgTable) ? getTableConfig(table).indexes.map(({ config }) => config.name) : [],
  )
  expect(wanted).toContain('turns_status_at')
  const missing = async () => validIndexes().then(valid => wanted.filter(name => name === undefined || !valid.has(name)))
  expect(await missing()).toEqual([])
  await client.query("update pg_index set indisvalid = false where indexrelid = 'turns_status_at'::regclass")
  expect(await missing()).toEqual(['turns_status_at'])
  await migrate(url)
  expect(await missing()).toEqual([])
})

test('an index of a large table is built while turns are written, and processes that wait for the migration do not wait for each other', async () => {
  const url = await createEmptyDatabase()
  await migrate(url)
  const clients = [new Client({ connectionString: url }), new Client({ connectionString: url })]
  const [writer, other] = clients
  for (const client of clients) await client.connect()
  onTestFinished(async () => void (await Promise.all(clients.map(client => client.end()))))
  await other?.query('drop index turns_status_at')
  await writer?.query('begin')
  await writer?.query("update turns set status = 'queued'")
  const migrated = Promise.all([migrate(url), migrate(url), migrate(url)])
  await until(
    'the index waits',
    async () =>
      (await other?.query("select from pg_stat_activity where query ilike 'create index%' and wait_event_type = 'Lock'"))?.rowCount,
  )
  await other?.query("update turns set status = 'queued'")
  await writer?.query('commit')
  await migrated
})

test('migrations from 0027 on change messages, turns and tasks only in the catalog, which takes as long for ten rows as for ten million', () => {
  const slow = [
    /create (unique )?index .* on "(messages|turns|tasks)"/i,
    /alter table "(messages|turns|tasks)" (alter column|add constraint)/i,
    /alter table "(messages|turns|tasks)" add column .*(generated|references)/i,
    /^\s*(update|delete from|insert into) "?(messages|turns|tasks)"?/im,
  ]
  const since = files().filter(file => file >= '0027')
  expect(since.length).toBeGreaterThan(0)
  expect(since.filter(file => slow.some(pattern => pattern.test(readFileSync(join(folder, file), 'utf8'))))).toEqual([])
})

test('worker keys from before there were any limits: those of the default tenant work for all, those of another for it alone', async () => {
  const url = await createEmptyDatabase()
  const client = await open(url)
  for (const file of files().filter(name => name < '0006')) await client.query(readFileSync(join(folder, file), 'utf8'))
  const keys = [
    ...[
      ['a', 'default', '{worker}'],
      ['b', 'acme', '{worker}'],
    ],
    ...[
      ['c', 'default', '{tasks:read}'],
      ['d', 'default', '{tasks:read,worker}'],
    ],
  ]
  for (const key of keys) await client.query("insert into keys (id, tenant, scopes, name, digest) values ($1, $2, $3, '', '')", key)
  for (const file of files().filter(name => name >= '0006')) await client.query(readFileSync(join(folder, file), 'utf8'))
  const { rows } = await client.query('select id, all_tenants, agents from keys order by id')
  expect(rows).toEqual(['a', 'b', 'c', 'd'].map(id => ({ id, all_tenants: id === 'a' || id === 'd', agents: null })))
})

async function open(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

async function untilBlocked(observer: Client): Promise<void> {
  const inDatabase = 'database = (select oid from pg_database where datname = current_database())'
  await until('a statement waits for a lock', async () => {
    const { rowCount } = await observer.query(`select from pg_locks where not granted and ${inDatabase}`)
    return rowCount
  })
}

/** A folder with these migrations. */
function folderOf(statements: string[]): string {
  const migrations = mkdtempSync(join(tmpdir(), 'rivulet-migrations-'))
  onTestFinished(() => rmSync(migrations, { recursive: true }))
  mkdirSync(join(migrations, 'meta'))
  const entries = statements.map((_, idx) => ({ idx, version: '7', when: idx + 1, tag: `000${idx}_test`, breakpoints: true }))
  writeFileSync(join(migrations, 'meta/_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }))
  for (const { idx, tag } of entries) writeFileSync(join(migrations, `${tag}.sql`), statements[idx] ?? '')
  return migrations
}

async function createEmptyDatabase(): Promise<string> {
  const name = `empty_${process.pid}_${Date.now()}`
  const admin = new Client({ connectionString: inject('postgresUrl') })
  await admin.connect()
  await admin.query(`create database ${name}`)
  onTestFinished(async () => {
    await admin.query(`drop database ${name}`)
    await admin.end()
  })
  return Object.assign(new URL(inject('postgresUrl')), { pathname: `/${name}` }).href
}

function files(): string[] {
  return readdirSync(folder)
    .filter(file => file.endsWith('.sql'))
    .sort()
}
