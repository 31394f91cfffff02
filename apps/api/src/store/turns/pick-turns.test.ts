import { createTaskBody } from '@rivulet/contract/tasks'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { pauseAgent, setLimits } from '../agents/agent-limits.ts'
import { type DatabaseHandle, openDatabase } from '../connection/database.ts'
import { limits, outbox, tasks, turns, workers } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { type Picked, pickTurns, waitingAgents } from './pick-turns.ts'

/** Far above what a slow machine needs to add the tasks of a test. */
const workerTimeoutMs = 600_000

let database: DatabaseHandle

beforeAll(async () => {
  const { url } = await createTestDatabase()
  database = openDatabase({ url, onError: () => {} })
  await database.db.execute(sql`insert into agents values ('echo', ''), ('other', '')`)
})
afterAll(() => database.close())
beforeEach(async () => {
  await database.db.delete(tasks)
  await database.db.delete(limits)
})

describe('the next turn', () => {
  test('is the oldest, of the highest priority first, where one key waits', async () => {
    await add('a', 2, { priority: 0 })
    await add('a', 1, { priority: 7 })
    expect(await pickOf(2)).toEqual(['a 7', 'a 0'])
    expect(await pickOf(10)).toEqual(['a 0'])
  })

  test('is that of the key that holds least: one that came late does not wait behind a thousand', async () => {
    await add('flood', 30)
    await pick(20)
    await add('late', 3)
    expect(await pickOf(24)).toEqual(['late', 'late', 'late', 'flood'])
  })

  test('is that of a key that holds nothing, also where the queue is full', async () => {
    await add('flood', 30)
    await pick(20)
    await add('late', 3)
    expect(await pickOf(20)).toEqual(['late'])
    expect(await pickOf(20)).toEqual([])
  })

  test('goes round the keys, however many turns each of them has', async () => {
    await add('a', 9)
    await add('b', 9)
    await add('c', 1)
    const picked = await pickOf(6)
    expect(picked.toSorted()).toEqual(['a', 'a', 'a', 'b', 'b', 'c'])
  })

  test('is twice as often that of a key of weight 2', async () => {
    await setLimits(database.db, 'default', 'echo', { weights: { heavy: 2 } })
    await add('light', 9)
    await add('heavy', 9)
    const picked = await pickOf(9)
    expect(picked.filter(key => key === 'heavy')).toHaveLength(6)
  })

  test('goes round the tenants, however many keys one of them invents', async () => {
    for (let i = 0; i < 10; i += 1) await add(`key ${i}`, 1, {}, 'inventive')
    await add('only', 5, {}, 'plain')
    const { picked } = await pick(6)
    expect(picked).toHaveLength(6)
    const { rows } = await database.db.execute(sql`select count(*) from turns where tenant = 'plain' and sent is not null`)
    expect(rows).toEqual([{ count: '3' }])
  })

  test('is not one that is delayed, that ended, or of another agent', async () => {
    await add('a', 1, { delayMs: 60_000 })
    await add('a', 1, { agent: 'other' })
    await add('gone', 1)
    await database.db.update(turns).set({ status: 'canceled' }).where(sql`task in (select id from tasks where concurrency_key = 'gone')`)
    const { picked } = await pick(10)
    expect(picked.map(({ isGone }) => isGone)).toEqual([true])
    expect(await waitingAgents(database.db)).toEqual(['other'])
  })
})

describe('where slots are kept free', () => {
  beforeEach(async () => {
    await database.db.delete(workers)
  })

  test.each([
    { slots: 9, flood: 8 },
    { slots: 20, flood: 16 },
    { slots: 100, flood: 80 },
  ])('a flood of one key gets $flood of $slots slots, and a turn of another key the next', async ({ slots, flood }) => {
    await addWorker('one', slots)
    await add('flood', 100)
    const first = await pick(200, { keepsSpare: true })
    expect(first).toMatchObject({ spare: slots - flood, waiting: [{ tenant: 'default', concurrencyKey: 'flood' }], isShared: false })
    expect(first.picked).toHaveLength(flood)
    expect(await pickOf(200, { keepsSpare: true })).toEqual([])
    await add('late', 1)
    expect(await pickOf(200, { keepsSpare: true })).toEqual(['late'])
  })

  test('a flood gets all of 8 slots, and its queue', async () => {
    await addWorker('one', 8)
    await add('flood', 20)
    expect((await pick(64, { keepsSpare: true })).picked).toHaveLength(20)
  })

  test('the turns of a key that holds few are sent while slots are free, and those of the flood when its own have ended', async () => {
    await addWorker('one', 20)
    await add('flood', 40)
    await pick(64, { keepsSpare: true })
    await run('one')
    await add('late', 9)
    const { picked, isShared, spare } = await pick(64, { keepsSpare: true })
    // A fifth would be more than four for the slot that is left.
    expect([picked.length, isShared, spare]).toEqual([4, true, 0])
    await run('one')
    await end('flood', 4)
    expect(await pickOf(64, { keepsSpare: true })).toEqual(['late', 'late', 'late'])
    await run('one')
    expect(await pickOf(64, { keepsSpare: true })).toEqual([])
    await end('flood', 12)
    const last = await pick(64, { keepsSpare: true })
    // Of the 13 slots, because the flood holds nothing any more.
    expect([last.picked.length, last.spare]).toEqual([11, 2])
  })

  test('turns of another agent on the same workers take slots, and absent or unknown workers keep none', async () => {
    await addWorker('one', 10)
    await add('flood', 30)
    await add('other', 4, { agent: 'other' })
    await pickTurns(database.db, 'other', { ahead: 64, keepsSpare: false, workerTimeoutMs })
    await run('one')
    // Six slots are left for the flood and others.
    expect((await pick(64, { keepsSpare: true })).picked).toHaveLength(5)
    await database.db.update(workers).set({ seenAt: sql`now() - interval '11 minutes'` })
    expect((await pick(64, { keepsSpare: true })).picked).toHaveLength(25)
  })

  test('without another key, every slot and the queue ahead of it are for the flood', async () => {
    await addWorker('one', 20)
    await add('flood', 100)
    const { picked, spare, isShared } = await pick(64)
    expect([picked.length, spare, isShared]).toEqual([64, 0, false])
  })
})

describe('a limit', () => {
  test.each([
    ['of an agent', { concurrency: 3 }, 3],
    ['of each key', { perKey: 3 }, 6],
    ['of each key in a minute', { perMinute: 3 }, 6],
    ['of all kinds: the lowest counts', { concurrency: 5, perKey: 3, perMinute: 4 }, 5],
  ])('%s holds for those that are picked together and for later ones', async (_, wanted, most) => {
    await setLimits(database.db, 'default', 'echo', wanted)
    await add('a', 10)
    await add('b', 10)
    expect((await pick(64)).picked).toHaveLength(most)
    expect((await pick(64)).picked).toEqual([])
    expect((await pick(64)).isWaiting).toBe(true)
  })

  test('is never exceeded by picks that are made side by side, while turns end', async () => {
    await setLimits(database.db, 'default', 'echo', { perKey: 3 })
    await add('a', 40)
    for (let round = 0; round < 12; round += 1) {
      const picks = await Promise.all([pick(64), pick(64), pick(64)])
      const held = await database.db.select().from(turns).where(sql`sent is not null and status in ('queued', 'running')`)
      expect(held.length).toBe(3)
      expect(picks.flatMap(({ picked }) => picked).length).toBe(round === 0 ? 3 : 1)
      await database.db
        .update(turns)
        .set({ status: 'completed' })
        .where(eq(turns.id, held[0]?.id ?? ''))
    }
  })

  test('of a minute frees a place when a start is a minute ago, and not when its turn has ended', async () => {
    await setLimits(database.db, 'default', 'echo', { perMinute: 2 })
    await add('a', 4)
    const { picked } = await pick(64)
    await database.db.update(turns).set({ status: 'completed' }).where(sql`sent is not null`)
    await database.db.execute(sql`update starts set at = now()`)
    expect((await pick(64)).picked).toEqual([])
    await database.db.execute(sql`update starts set at = now() - interval '61 seconds' where turn = ${picked[0]?.turnId}`)
    expect((await pick(64)).picked).toHaveLength(1)
  })

  test('is of one tenant, and so is a pause', async () => {
    await setLimits(database.db, 'a', 'echo', { concurrency: 1 })
    await pauseAgent(database.db, 'b', 'echo', true)
    for (const tenant of ['a', 'b', 'c']) await add('key', 3, {}, tenant)
    const { picked } = await pick(64)
    const { rows } = await database.db.execute(
      sql`select tenant, count(*) from turns where sent is not null group by tenant order by tenant`,
    )
    expect([picked.length, rows]).toEqual([
      4,
      [
        { tenant: 'a', count: '1' },
        { tenant: 'c', count: '3' },
      ],
    ])
  })
})

function pick(ahead: number, { keepsSpare = false } = {}) {
  return pickTurns(database.db, 'echo', { ahead, keepsSpare, workerTimeoutMs })
}

/** The keys of the picked turns, with their priority where they differ in it. */
async function pickOf(ahead: number, options: { keepsSpare?: boolean } = {}): Promise<string[]> {
  const { picked } = await pick(ahead, options)
  const rows = await database.db.select().from(tasks)
  await remove(picked)
  return picked.map(({ task, priority }) => {
    const key = rows.find(({ id }) => id === task)?.concurrencyKey ?? ''
    return rows.some(other => other.priority > 0) ? `${key} ${priority}` : key
  })
}

async function addWorker(id: string, slots: number): Promise<void> {
  await database.db.insert(workers).values({ id, slots, agents: ['echo', 'other'], seenAt: sql`now()` })
}

/** A worker claims all turns that were sent. */
async function run(worker: string): Promise<void> {
  await database.db.update(turns).set({ status: 'running', worker }).where(sql`sent is not null and status = 'queued'`)
}

async function end(key: string, count: number): Promise<void> {
  await database.db
    .update(turns)
    .set({ status: 'completed' })
    .where(sql`id in (
    select turns.id from turns join tasks on tasks.id = turns.task where turns.status = 'running' and concurrency_key = ${key} limit ${count})`)
}

async function remove(picked: readonly Picked[]): Promise<void> {
  for (const { id } of picked) await database.db.delete(outbox).where(eq(outbox.id, id))
}

async function add(key: string, count: number, options: object = {}, tenant = 'default'): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const request = createTaskBody.parse({ agent: 'echo', concurrencyKey: key, ...options })
    await database.databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))
  }
}
