/** The feed, webhooks and the audit log go on after the rows were moved to another Postgres server, whose transactions have other numbers. */

import { createTaskBody } from '@rivulet/contract/tasks'
import { type Cursor, compareCursors } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { type SecondPostgres, spendTransactions, startSecondPostgres } from '../../../../../test/support/engines/second-postgres.ts'
import { insertAudit, listAudit } from '../access/audit.ts'
import { type DatabaseHandle, openDatabase } from '../connection/database.ts'
import { everyTenant } from '../connection/tenant.ts'
import { deliveries, feedReaders } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { createDeliveries, hasDeliveryWork } from './deliveries.ts'
import { readFeed } from './read-feed.ts'

const tenant = 'default'
const patience = { timeout: 60_000 }
const onEnd = { url: 'https://receiver.example/ends' }
let second: SecondPostgres

beforeAll(async () => {
  second = await startSecondPostgres()
})
afterAll(() => second.close())

test('readers of the feed go on from their places after the rows were restored into a fresh server, and nothing is left out', async () => {
  const { url } = await createTestDatabase()
  await spendTransactions(url, 20_000)
  const first = openDatabase({ url, onError: () => {} })
  await first.db.execute("insert into agents values ('echo', '')")
  const before = await addTask(first)
  await addAudit(first, 'before')
  await expect.poll(async () => (await tasksAfter(first, '0-0')).tasks, patience).toEqual([before])
  const place = (await tasksAfter(first, '0-0')).next
  while (await hasDeliveryWork(first.db)) await createDeliveries(first.db, 100, () => '')
  expect((await first.db.select().from(feedReaders))[0]?.place).not.toBe('0-0')
  await first.close()

  await second.copyRows(url)
  let moves = 0
  const moved = openDatabase({ url: second.url, onError: () => {}, onMove: () => (moves += 1) })
  const after = await addTask(moved)
  await addAudit(moved, 'after')
  await expect.poll(async () => (await tasksAfter(moved, place)).tasks, patience).toEqual([after])
  expect((await tasksAfter(moved, '0-0')).tasks).toEqual([before, after])
  expect(compareCursors((await tasksAfter(moved, place)).next, place)).toBeGreaterThan(0)
  const actions = async () => (await listAudit(moved.db, everyTenant, { limit: 10 })).map(({ target }) => target)
  await expect.poll(actions, patience).toEqual(['after', 'before'])
  await endTurns(moved)
  await expect.poll(() => hasDeliveryWork(moved.db), patience).toBe(true)
  const ends = async () => {
    await createDeliveries(moved.db, 100, () => '')
    return (await moved.db.select().from(deliveries)).map(({ task }) => task).sort()
  }
  await expect.poll(ends, patience).toEqual([before, after].sort())
  expect(moves).toBe(1)
  await moved.close()
})

test('a second start on the same server moves nothing', async () => {
  let moves = 0
  for (let start = 0; start < 2; start += 1) {
    const database = openDatabase({ url: second.url, onError: () => {}, onMove: () => (moves += 1) })
    await database.db.execute('select 1')
    await database.close()
  }
  expect(moves).toBe(0)
})

async function addTask({ databaseFor }: DatabaseHandle): Promise<string> {
  const request = createTaskBody.parse({ agent: 'echo', input: 'hello', onEnd })
  return (await databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))).task.id
}

async function tasksAfter({ db }: DatabaseHandle, after: Cursor) {
  const { entries, next } = await readFeed(db, everyTenant, { after, limit: 100, types: ['task.created'] })
  return { tasks: entries.map(({ task }) => task), next }
}

function endTurns({ db }: DatabaseHandle): Promise<unknown> {
  return db.execute("update turns set status = 'canceled'")
}

function addAudit({ databaseFor }: DatabaseHandle, target: string): Promise<void> {
  return databaseFor(tenant).transaction(tx => insertAudit(tx, tenant, { via: 'database' }, { action: 'task.deleted', target }))
}
