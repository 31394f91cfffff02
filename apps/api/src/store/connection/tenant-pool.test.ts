/** Statements that are sent at once share a connection: whatever happens to one, no caller gets the result of another. */
import { Pool } from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { startProxy } from '../../../../../test/support/viewers/proxy.ts'
import { sqlStateOf } from './database.ts'
import { everyTenant } from './tenant.ts'
import { type Statement, TenantPool } from './tenant-pool.ts'

let url: string
beforeAll(async () => {
  url = (await createTestDatabase()).url
})

test('each of many queries at once gets its own rows', async () => {
  const { pool } = open(url)
  const asked = Array.from({ length: 50 }, (_, i) => i)
  expect(await Promise.all(asked.map(i => rowOf(pool, i)))).toEqual(asked)
})

test('a statement that takes too long fails alone, and the next ones get their own results on another connection', async () => {
  const { pool, processId } = open(url, { query_timeout: 1_500 })
  const before = await processId()
  const late = pool.transact([number(1), sleep(3), number(2)])
  const next = [3, 4, 5].map(i => rowOf(pool, i))
  await expect(late).rejects.toThrow(/timeout|terminated/i)
  expect(await Promise.all(next)).toEqual([3, 4, 5])
  expect(await processId()).not.toBe(before)
})

test('one that Postgres cancels or refuses has changed nothing, tells why, and leaves the connection as good as it was', async () => {
  const { pool, processId } = open(url, { statement_timeout: 1_500 })
  const before = await processId()
  const refused: [Statement, string][] = [
    [sleep(3), '57014'],
    [{ name: 'refused', text: 'select ($1::text)::json', values: ['{'] }, '22P02'],
    [{ name: 'nonsense', text: 'select nothing from nowhere', values: [] }, '42P01'],
  ]
  for (const [statement, state] of refused) {
    const failed = await pool.transact([addAgent(state), statement, number(2)]).catch(error => error)
    expect(sqlStateOf(failed)).toBe(state)
    expect(await rowOf(pool, 7)).toBe(7)
  }
  expect(await processId()).toBe(before)
  expect((await pool.query({ text: 'select from agents' })).rowCount).toBe(0)
})

test('one whose answer is lost is not answered with anything else', async () => {
  const proxy = await startProxy(url)
  onTestFinished(proxy.close)
  const { pool } = open(proxy.url)
  await rowOf(pool, 1)
  const lost = proxy.dropReply('lost_agent')
  await expect(pool.transact([addAgent('lost_agent'), number(2)])).rejects.toThrow(/terminated|ECONNRESET/i)
  await lost
  expect(await Promise.all([3, 4].map(i => rowOf(pool, i)))).toEqual([3, 4])
})

test('a read whose connection breaks is asked once more on another, a write is not', async () => {
  const proxy = await startProxy(url)
  onTestFinished(proxy.close)
  const { pool } = open(proxy.url)
  const read = proxy.dropReply('a_read')
  expect((await pool.query({ text: "select 'a_read' as word" })).rows).toEqual([{ word: 'a_read' }])
  await read
  const written = proxy.dropReply('a_write')
  await expect(pool.query({ text: "insert into agents values ('a_write', '')" })).rejects.toThrow(/terminated|ECONNRESET/i)
  await written
  const always = [proxy.dropReply('twice')]
  const twice = pool.query({ text: "select 'twice'" })
  await always[0]
  always.push(proxy.dropReply('twice'))
  await expect(twice).rejects.toThrow(/terminated|ECONNRESET/i)
  await Promise.all(always)
})

/** With one connection: the next caller gets the released one. */
function open(at: string, options: { query_timeout?: number; statement_timeout?: number } = {}) {
  const connections = new Pool({ connectionString: at, max: 1, pipeline: true, ...options })
  connections.on('error', () => {}).on('connect', client => client.on('error', () => {}))
  onTestFinished(() => connections.end())
  const pool = new TenantPool(connections, { tenant: everyTenant })
  return { pool, processId: async () => (await pool.query({ text: 'select pg_backend_pid() as id' })).rows[0].id as number }
}

async function rowOf(pool: TenantPool, i: number): Promise<number> {
  const [, last] = await pool.transact([number(-1), number(i)])
  return last.rows[0].number
}

function number(i: number) {
  return { name: 'number', text: 'select $1::int as number', values: [i] }
}

function sleep(seconds: number) {
  return { name: 'sleep', text: 'select pg_sleep($1)', values: [seconds] }
}

function addAgent(name: string) {
  return { name: 'add_agent', text: "insert into agents values ($1, '')", values: [name] }
}
