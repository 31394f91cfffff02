import { createTaskBody } from '@rivulet/protocol'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { pauseAgent, setLimits } from '../agents/agent-limits.ts'
import { type DatabaseHandle, openDatabase } from '../connection/database.ts'
import { limits, outbox, tasks, turns } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { type Picked, pickTurns, waitingAgents } from './pick-turns.ts'

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

function pick(ahead: number) {
  return pickTurns(database.db, 'echo', ahead)
}

/** The keys of the picked turns, with their priority where they differ in it. */
async function pickOf(ahead: number): Promise<string[]> {
  const { picked } = await pick(ahead)
  const rows = await database.db.select().from(tasks)
  await remove(picked)
  return picked.map(({ task, priority }) => {
    const key = rows.find(({ id }) => id === task)?.concurrencyKey ?? ''
    return rows.some(other => other.priority > 0) ? `${key} ${priority}` : key
  })
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
