/** The secrets of `onEnd` after a rotation of SECRETS_KEY, in a real database. */
import { createScheduleBody, createTaskBody } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import { createVault } from '../access/vault.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { deliveries, schedules, tasks } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { rewrapDeliveries, rewrapSchedules, rewrapTasks, sealOnEnd } from './on-end-secrets.ts'

const tenant = 'acme'
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const [oldKey, key] = ['a'.repeat(32), 'b'.repeat(32)]
const [before, during, after] = [createVault({ key: oldKey }), createVault({ key, oldKey }), createVault({ key })]
let store: DatabaseHandle

beforeAll(async () => {
  store = await openStore()
})
afterAll(() => store.close())

test('a rotation seals the secrets of tasks, schedules and deliveries with the new key alone, and leaves one in the clear', async () => {
  const { db } = store
  const clear = createTaskBody.parse({ agent: 'echo', onEnd: { url: 'https://example.com', secret } })
  const sealed = sealOnEnd(before, tenant, clear)
  const id = '00000000-0000-4000-8000-000000000001'
  await db.transaction(async tx => {
    for (const body of [sealed, clear, createTaskBody.parse({ agent: 'echo' }), sealed]) await createTask(tx, tenant, body, 10)
    const request = sealOnEnd(
      before,
      tenant,
      createScheduleBody.parse({ agent: 'echo', cron: '0 0 1 1 *', input: 'hello', onEnd: clear.onEnd }),
    )
    await tx.insert(schedules).values({ id, tenant, request, status: 'active', nextAt: null })
    const [task] = await tx.select({ id: tasks.id }).from(tasks).limit(1)
    if (!task) throw new Error('No task was created')
    await tx.insert(deliveries).values({ id, tenant, task: task.id, type: 'turn.finished', payload: '{}', onEnd: sealed.onEnd })
  })
  const rotation = { oldKeyName: during.oldKeyName ?? '', rewrapText: during.rewrapText }
  const first = await rewrapTasks(db, rotation, null, 3)
  const second = await rewrapTasks(db, rotation, first.next, 3)
  expect([first.moved, first.next === null, second]).toEqual([1, false, { moved: 1, next: null }])
  for (const expected of [1, 0]) {
    expect(await rewrapSchedules(db, rotation, 10)).toBe(expected)
    expect(await rewrapDeliveries(db, rotation, 10)).toBe(expected)
  }
  const stored = [
    ...(await db.select().from(tasks).orderBy(tasks.id)).map(({ onEnd }) => onEnd?.secret),
    ...(await db.select().from(schedules)).map(({ request }) => request.onEnd?.secret),
    ...(await db.select().from(deliveries)).map(({ onEnd }) => onEnd?.secret),
  ]
  expect(stored.filter(text => text === secret)).toHaveLength(1)
  const moved = stored.flatMap(text => (text === undefined || text === secret ? [] : [text]))
  expect(moved.map(text => [after.openText(tenant, text), before.openText(tenant, text)])).toEqual(Array(4).fill([secret, null]))
})
