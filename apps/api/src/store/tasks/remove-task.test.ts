import { text } from '@rivulet/protocol'
import { eq, sql } from 'drizzle-orm'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { until } from '../../../../../test/support/until.ts'
import { type DatabaseHandle, openDatabase } from '../connection/database.ts'
import { firstIdAt } from '../reads/activity.ts'
import { idempotencyKeys, messages, tasks, turns } from '../schema.ts'
import { removeOldTasks } from './remove-task.ts'

const hour = 3_600_000
const keptMs = 24 * hour

let database: DatabaseHandle
let made = 0

beforeEach(async () => {
  database = openDatabase({ url: (await createTestDatabase()).url, onError: () => {} })
  onTestFinished(() => database.close())
})

describe('old tasks', () => {
  test('are removed page by page, of all tenants, and no others', async () => {
    const old = [await add({ tenant: 'a' }), await add({ tenant: 'b' }), await add({ status: 'failed' }), await add({ status: 'canceled' })]
    const kept = [
      await add({ endedMsAgo: hour }),
      await add({ madeMsAgo: hour, endedMsAgo: hour }),
      await add({ status: 'running' }),
      await add({ status: 'queued' }),
      await add({ announced: false }),
      await add({ turnStatus: 'queued' }),
    ]
    const removed: string[] = []
    let after: string | null = null
    do {
      const page = await removeOldTasks(database.db, { keptMs, after, limit: 2 })
      removed.push(...page.removed)
      after = page.next
    } while (after !== null)
    expect(removed.sort()).toEqual(old.sort())
    expect((await database.db.select({ id: tasks.id }).from(tasks)).map(({ id }) => id).sort()).toEqual(kept.sort())
    expect(await database.db.select().from(turns)).toHaveLength(kept.length)
  })

  test('are removed with few messages at a time, and a large one in pieces', async () => {
    const [small, large, other, last] = [
      await add({ messages: 3 }),
      await add({ messages: 25 }),
      await add({ messages: 6 }),
      await add({ messages: 6 }),
    ]
    const pages: string[][] = []
    let after: string | null = null
    do {
      const page = await removeOldTasks(database.db, { keptMs, after, limit: 10, messageLimit: 10 })
      pages.push(page.removed.toSorted())
      after = page.next
    } while (after !== null)
    expect(pages).toEqual([[small], [large], [other, last].toSorted()])
    expect(await database.db.select().from(messages)).toEqual([])
  })

  test('take the stored responses about them along, and no others', async () => {
    const [task, kept] = [await add({}), await add({ endedMsAgo: hour })]
    const bodies = {
      created: { task: { id: task } },
      continued: { turn: { task } },
      answered: { wait: { task } },
      other: { task: { id: kept } },
    }
    const rows = Object.entries(bodies).map(([key, body]) => ({ tenant: 'default', key, fingerprint: 'f', status: 200, body }))
    await database.db.insert(idempotencyKeys).values(rows)
    expect(await removeOldTasks(database.db, { keptMs, after: null, limit: 10 })).toMatchObject({ removed: [task] })
    expect((await database.db.select().from(idempotencyKeys)).map(({ key }) => key)).toEqual(['other'])
  })

  test('stay when a caller sends input at that moment', async () => {
    const id = await add({})
    let removing: ReturnType<typeof removeOldTasks> | undefined
    await database.db.transaction(async tx => {
      await tx.select().from(tasks).where(eq(tasks.id, id)).for('update')
      removing = removeOldTasks(database.db, { keptMs, after: null, limit: 10 })
      await until('it waits for the task', async () => {
        const { rows } = await database.pool.query("select from pg_stat_activity where wait_event_type = 'Lock' and query like 'delete%'")
        return rows.length > 0
      })
      await tx.update(tasks).set({ status: 'queued', updatedAt: sql`now()` }).where(eq(tasks.id, id))
    })
    expect(await removing).toMatchObject({ removed: [] })
    expect(await database.db.select().from(tasks)).toMatchObject([{ id }])
  })
})

type Plan = {
  tenant?: string
  status?: 'completed' | 'failed' | 'canceled' | 'running' | 'queued'
  turnStatus?: 'completed' | 'queued'
  madeMsAgo?: number
  endedMsAgo?: number
  announced?: boolean
  messages?: number
}

/** By default one that was made three days ago, and ended two days ago. */
async function add(plan: Plan): Promise<string> {
  const { tenant = 'default', status = 'completed', madeMsAgo = 72 * hour, endedMsAgo = 48 * hour, announced = true } = plan
  const { turnStatus = 'completed', messages: count = 0 } = plan
  made += 1
  const [createdAt, updatedAt] = [madeMsAgo, endedMsAgo].map(ago => new Date(Date.now() - ago)) as [Date, Date]
  const id = firstIdAt(createdAt.getTime()).replace(/\d{4}$/, String(made).padStart(4, '0'))
  const limits = { priority: 0, timeoutMs: 1_000, maxAttempts: 1, epoch: 1 }
  await database.db.insert(tasks).values({ id, tenant, agent: 'echo', status, metadata: {}, ...limits, createdAt, updatedAt })
  const times = { queuedAt: createdAt, runAt: createdAt, deadline: createdAt, finishedAt: updatedAt }
  await database.db.insert(turns).values({ id, task: id, tenant, number: 1, status: turnStatus, attempt: 1, announced, ...times })
  const message = { task: id, tenant, turn: 1, attempt: 1, author: 'agent' as const, content: text('x'), metadata: {}, createdAt }
  const said = Array.from({ length: count }, (_, index) => ({ ...message, index, status: 'complete' as const }))
  if (said.length > 0) await database.db.insert(messages).values(said)
  return id
}
