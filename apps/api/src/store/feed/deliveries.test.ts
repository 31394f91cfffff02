/** The end of a task reaches its `onEnd`, whatever becomes of the task meanwhile. */
import { randomUUID } from 'node:crypto'
import { createTaskBody } from '@rivulet/contract/tasks'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { deliveries, feed, tasks, turns } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { claimDeliveries, createDeliveries } from './deliveries.ts'

const tenant = 'default'
const onEnd = { url: 'https://receiver.example/ends', secret: `whsec_${'a'.repeat(32)}` }
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('the end of a task that is deleted before the feed is read is delivered once, and the feed keeps no address', async () => {
  const { db } = database
  const request = createTaskBody.parse({ agent: 'echo', input: 'hello', onEnd })
  const { task } = await database.databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))
  await db.update(turns).set({ status: 'completed' }).where(eq(turns.task, task.id))
  await db.delete(tasks).where(eq(tasks.id, task.id))
  const sent = async () => {
    await createDeliveries(db, 100, ({ type }) => type)
    return db.select({ task: deliveries.task, type: deliveries.type, onEnd: deliveries.onEnd }).from(deliveries)
  }
  // Transactions of other databases on this server hold up the readers of the feed.
  await expect.poll(sent).toEqual([{ task: task.id, type: 'turn.finished', onEnd }])
  expect(await sent()).toHaveLength(1)
  const stored = await db.select({ type: feed.type, onEnd: feed.onEnd }).from(feed).where(eq(feed.task, task.id))
  expect(stored.map(({ type }) => type)).toContain('turn.finished')
  expect(stored.map(row => row.onEnd)).toEqual(stored.map(() => null))
})

test('a delivery of the version before, which has no target, is sent while a target of its tenant is busy', async () => {
  const { db } = database
  await db.delete(deliveries)
  const busy = { tenant, target: 'receiver.example:443' }
  const row = (id: string, target: string | null) => ({
    id,
    tenant,
    task: id,
    type: 'turn.finished' as const,
    payload: '{}',
    onEnd,
    target,
    nextAt: new Date(0),
  })
  const [older, held] = [randomUUID(), randomUUID()]
  await db.insert(deliveries).values([row(older, null), row(held, busy.target)])
  const due = await claimDeliveries(db, 10, { tenants: [], targets: [busy] })
  expect(due.map(({ id, url }) => [id, url])).toEqual([[older, onEnd.url]])
})
