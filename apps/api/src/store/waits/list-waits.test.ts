/** A search of waits by metadata, which no index serves: each call looks at a bounded number, and the pages together have every wait that fits. */
import { randomUUID } from 'node:crypto'
import { createTaskBody } from '@rivulet/contract/tasks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { listWaits, type WaitFilter } from './list-waits.ts'

const tenant = 'default'
const count = 70
const maxBytes = 64 * 1024 * 1024
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
  const request = createTaskBody.parse({ agent: 'echo' })
  const { task, turn } = await database.databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))
  for (let i = 0; i < count; i += 1) {
    // Postgres stores random digits in half of their length: 70 waits have more metadata than a call looks at.
    const metadata = { place: i % 35 === 0 ? 'marked' : 'other', large: Array.from({ length: 16_000 }, () => Math.random().toString(36)) }
    await database.pool.query(
      `insert into waits (id, task, tenant, turn, number, agent, name, kind, request, metadata, status, expires_at)
       values ($1, $2, $3, $4, 1, 'echo', $5, 'question', '{"title":"?","actions":["accept"]}', $6, 'open', now() + interval '1 day')`,
      [randomUUID(), task.id, tenant, turn?.id, `wait ${i}`, metadata],
    )
  }
})
afterAll(() => database.close())

const filter = (given: Partial<WaitFilter>): WaitFilter => ({
  ...{ kind: undefined, agent: undefined, assignee: undefined, task: undefined, cursor: undefined },
  ...{ status: 'open', limit: 50, metadata: {} },
  ...given,
})

test('pages end early where metadata is large, and together have each wait once', async () => {
  const pages: string[][] = []
  let cursor: string | null = null
  do {
    const given: WaitFilter = filter({ metadata: { place: 'marked' }, cursor: cursor ?? undefined })
    const { data, nextCursor }: Awaited<ReturnType<typeof listWaits>> = await listWaits(database.listsFor(tenant), tenant, given, maxBytes)
    pages.push(data.map(({ id }) => id))
    cursor = nextCursor
  } while (cursor)
  expect(pages.length).toBeGreaterThan(1)
  const { rows } = await database.pool.query("select id from waits where metadata->>'place' = 'marked' order by id")
  expect(pages.flat()).toEqual(rows.map(({ id }) => id))
  expect(rows).toHaveLength(2)
})

test('a list without a search has a full page, whatever the size of the metadata', async () => {
  expect((await listWaits(database.listsFor(tenant), tenant, filter({}), maxBytes)).data).toHaveLength(50)
})
