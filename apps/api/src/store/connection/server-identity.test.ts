/** Whether Postgres is another server than before, for logins that cannot read its identifier. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../../../test/support/until.ts'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from './database.ts'

const role = `limited_${process.pid}_${Date.now()}`
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
  for (const text of [
    `create role ${role}`,
    `grant select, update on feed_server, feed, audit to ${role}`,
    'revoke execute on function pg_control_system() from public',
    'update feed_server set server = null',
  ])
    await database.pool.query(text)
})
afterAll(async () => {
  await database.pool.query(`drop owned by ${role}`)
  await database.pool.query(`drop role ${role}`)
  await database.close()
})

async function noteServer(login?: string): Promise<boolean> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    if (login) await client.query(`set local role ${login}`)
    const { rows } = await client.query('select note_server() as "hasMoved"')
    await client.query('commit')
    return rows[0].hasMoved
  } finally {
    client.release(true)
  }
}

async function shift(): Promise<string> {
  const { rows } = await database.pool.query('select shift from feed_server')
  return rows[0].shift
}

test('logins that can read the identifier and logins that cannot take turns on one server, and it is no move', async () => {
  const before = await shift()
  const moves: boolean[] = []
  for (const login of [role, undefined, role, undefined, role]) moves.push(await noteServer(login))
  expect(moves).toEqual(Array(5).fill(false))
  expect(await shift()).toBe(before)
})

test('an entry that is committed while such a login connects is no move', async () => {
  const before = await shift()
  const writer = await database.pool.connect()
  await writer.query('begin')
  await writer.query('lock table feed_server in access exclusive mode')
  const noting = noteServer(role)
  noting.catch(() => {})
  await until('the login waits for the lock', async () => {
    const { rows } = await writer.query("select from pg_locks where relation = 'feed_server'::regclass and not granted")
    return rows.length > 0
  })
  await writer.query("insert into feed (tenant, type, task, agent) values ('default', 'task.created', gen_random_uuid(), 'echo')")
  await writer.query('commit')
  writer.release()
  expect(await noting).toBe(false)
  expect(await shift()).toBe(before)
})
