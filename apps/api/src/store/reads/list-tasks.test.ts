/** A search that no index serves: each call looks at a bounded number of tasks, and the pages together have every task that fits. */
import { createTaskBody } from '@rivulet/contract/tasks'
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
  // Postgres reads such a small table whole otherwise, unlike one that a search is too slow for.
  await database.pool.query("do $$ begin execute format('alter database %I set enable_seqscan = off', current_database()); end $$")
  for (let i = 0; i < count; i += 1) {
    // Postgres stores random digits in half of their length: 70 tasks have more metadata than a call looks at.
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

test.each([
  ['tasks', listTasks],
  ['summaries', summarizeTasks],
] as const)(
  'a search of %s that takes too long looks at fewer tasks, and its next page goes on behind them',
  async (_, list) => {
    const search = (cursor?: string) =>
      list(database.listsFor(tenant), tenant, { limit: 50, metadata: {}, q: 'marked', ...(cursor && { cursor }) }, 64 * 1024 * 1024)
    const { rows } = await database.pool.query('select id from tasks order by id desc')
    // Each task that Postgres reads takes 50 ms: a statement about all 70 takes longer than a list may, one about ten does not.
    await database.pool.query('create policy slow on tasks as restrictive to rivulet_tenant using (pg_sleep(0.05) is not null)')
    const first = await search().finally(() => database.pool.query('drop policy slow on tasks'))
    expect(first.nextCursor).toBe(rows[9]?.id)
    const next = await search(rows[9]?.id)
    expect(next.nextCursor === null || next.nextCursor < rows[9]?.id).toBe(true)
  },
  120_000,
)
