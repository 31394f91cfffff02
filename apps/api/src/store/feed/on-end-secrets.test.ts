/** The secrets of `onEnd` under a new SECRETS_KEY, in a real database. */
import { createScheduleBody } from '@rivulet/contract/schedules'
import { createTaskBody } from '@rivulet/contract/tasks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import { createVault } from '../access/vault.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { deliveries, schedules, tasks } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { renewDeliveries, renewSchedules, renewTasks, sealOnEnd } from './on-end-secrets.ts'

const tenant = 'acme'
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const [oldKey, key] = ['a'.repeat(32), 'b'.repeat(32)]
const after = createVault({ key })
let store: DatabaseHandle

beforeEach(async () => {
  store = await openStore()
})
afterEach(() => store.close())

test.each([
  ['in the clear', createVault({}), createVault({ key })],
  ['under the old key', createVault({ key: oldKey }), createVault({ key, oldKey })],
])('the secrets of tasks, schedules and deliveries that are stored %s are sealed with the current key', async (_, before, during) => {
  const { db } = store
  const plain = createTaskBody.parse({ agent: 'echo', onEnd: { url: 'https://example.com', secret } })
  const sealed = sealOnEnd(before, tenant, plain)
  const id = '00000000-0000-4000-8000-000000000001'
  await db.transaction(async tx => {
    for (const body of [sealed, sealOnEnd(after, tenant, plain), createTaskBody.parse({ agent: 'echo' }), sealed])
      await createTask(tx, tenant, body, 10)
    const request = sealOnEnd(
      before,
      tenant,
      createScheduleBody.parse({ agent: 'echo', cron: '0 0 1 1 *', input: 'hello', onEnd: plain.onEnd }),
    )
    await tx.insert(schedules).values({ id, tenant, request, status: 'active', nextAt: null })
    const [task] = await tx.select({ id: tasks.id }).from(tasks).limit(1)
    if (!task) throw new Error('No task was created')
    await tx.insert(deliveries).values({ id, tenant, task: task.id, type: 'turn.finished', payload: '{}', onEnd: sealed.onEnd })
  })
  const first = await renewTasks(db, during, null, 3)
  const second = await renewTasks(db, during, first.next, 3)
  expect([first.moved, first.next === null, second]).toEqual([1, false, { moved: 1, next: null }])
  for (const expected of [1, 0]) {
    expect(await renewSchedules(db, during, 10)).toBe(expected)
    expect(await renewDeliveries(db, during, 10)).toBe(expected)
  }
  const stored = [
    ...(await db.select().from(tasks).orderBy(tasks.id)).map(({ onEnd }) => onEnd?.secret),
    ...(await db.select().from(schedules)).map(({ request }) => request.onEnd?.secret),
    ...(await db.select().from(deliveries)).map(({ onEnd }) => onEnd?.secret),
  ].flatMap(text => text ?? [])
  expect(stored).not.toContain(secret)
  expect(stored.map(text => after.openText(tenant, text))).toEqual(Array(5).fill(secret))
})
