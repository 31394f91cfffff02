/** Each time of a schedule becomes one task. */
import { createScheduleBody } from '@rivulet/contract/schedules'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { scheduleRuns, schedules, tasks } from '../schema.ts'
import { runDueSchedule, type ScheduleDeps } from './run-schedule.ts'

const deps: ScheduleDeps = { maxQueuedTurns: 10, admit: async () => {}, interrupt: () => expect.fail('There is nothing to interrupt') }
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('a time that comes again, because the clock was set back, creates no second task, and the schedule has its next time', async () => {
  const { db } = database
  const id = crypto.randomUUID()
  const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 - 1_000)
  const request = createScheduleBody.parse({ agent: 'echo', input: 'hello', cron: '0 0 1 1 *' })
  await db.insert(schedules).values({ id, tenant: 'default', request, status: 'active', nextAt: at })
  const created = await runDueSchedule(db, deps)
  await db.update(schedules).set({ nextAt: at }).where(eq(schedules.id, id))
  expect(await runDueSchedule(db, deps)).toBe('ran before')
  const stored = await db.select({ id: tasks.id }).from(tasks)
  expect(stored).toHaveLength(1)
  expect(created).toMatchObject({ run: { at, task: stored[0]?.id, turn: 1 } })
  expect(await db.select().from(scheduleRuns)).toMatchObject([{ at, task: stored[0]?.id }])
  expect((await db.select().from(schedules))[0]?.nextAt?.getTime()).toBeGreaterThan(Date.now())
})
