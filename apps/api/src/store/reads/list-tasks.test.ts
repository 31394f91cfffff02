/** A search that no index serves: each call looks at a bounded number of tasks, and the pages together have every task that fits. */
import { createTaskBody } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { listTasks, type TaskFilter } from './list-tasks.ts'
import { summarizeTasks } from './task-summaries.ts'

const tenant = 'default'
const count = 70
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
  for (let i = 0; i < count; i += 1) {
    // Hex digits of chance take half of their length as Postgres stores them: 70 tasks have more than a call looks at.
    const metadata = { place: i % 35 === 0 ? 'marked' : 'other', large: Array.from({ length: 16_000 }, () => Math.random().toString(36)) }
    const request = createTaskBody.parse({ agent: 'echo', metadata })
    await database.databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))
  }
})
afterAll(() => database.close())

test.each([
  ['tasks', listTasks],
  ['summaries', summarizeTasks],
] as const)('pages of %s end early where metadata is large, and together have each task once', async (_, list) => {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const filter: TaskFilter = { limit: 50, metadata: { place: 'marked' }, ...(cursor && { cursor }) }
    const { data, nextCursor } = await list(database.listsFor(tenant), tenant, filter, 64 * 1024 * 1024)
    pages.push(data.map(({ id }) => id))
    cursor = nextCursor ?? undefined
  } while (cursor)
  expect(pages.length).toBeGreaterThan(1)
  const { rows } = await database.pool.query("select id from tasks where metadata->>'place' = 'marked' order by id desc")
  expect(pages.flat()).toEqual(rows.map(({ id }) => id))
  expect(rows).toHaveLength(2)
})

test('a list without a search has a full page, whatever the size of the metadata', async () => {
  const { data } = await summarizeTasks(database.listsFor(tenant), tenant, { limit: 50, metadata: {} }, 64 * 1024 * 1024)
  expect(data).toHaveLength(50)
})
