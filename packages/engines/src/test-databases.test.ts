import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createTestDatabases, type TestDatabases, type TestDatabasesOptions } from './test-databases.ts'

test('a database is a copy of the migrated template, independent of the other copies', async () => {
  const databases = open({ migrate: url => run(url, 'CREATE TABLE migrated (n int)') })
  const [one, two] = await Promise.all([databases.create('Some File.test'), databases.create()])
  await run(one.url, 'INSERT INTO migrated VALUES (1)')
  expect(await run(one.url, 'SELECT n FROM migrated')).toEqual([{ n: 1 }])
  expect(await run(two.url, 'SELECT n FROM migrated')).toEqual([])
  expect(new URL(one.url).pathname).toMatch(/^\/some_file_test_[0-9a-f]{10}$/)
  await Promise.all([one.drop(), two.drop()])
  await expect(run(one.url, 'SELECT 1')).rejects.toThrow('does not exist')
})

test('the template is migrated once for several concurrent users', async () => {
  let migrations = 0
  const template = `once_${process.pid}`
  const migrate = async () => void migrations++
  const users = [1, 2, 3].map(() => open({ template, migrate }))
  const created = await Promise.all(users.map(databases => databases.create()))
  expect(migrations).toBe(1)
  await Promise.all(created.map(database => database.drop()))
})

test('a template whose migration failed is created again', async () => {
  const template = `failed_${process.pid}`
  const failing = open({ template, migrate: () => Promise.reject(new Error('on purpose')) })
  await expect(failing.create()).rejects.toThrow('on purpose')
  const database = await open({ template, migrate: async () => {} }).create()
  await database.drop()
})

test('a database that is still in use cannot be dropped', async () => {
  const database = await open({}).create()
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await expect(database.drop()).rejects.toThrow('is being accessed by other users')
  await client.end()
  await database.drop()
})

function open(options: Partial<TestDatabasesOptions>): TestDatabases {
  const databases = createTestDatabases({ url: inject('postgresUrl'), template: 'engines_test', migrate: async () => {}, ...options })
  onTestFinished(() => databases.close())
  return databases
}

async function run(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  try {
    await client.connect()
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
