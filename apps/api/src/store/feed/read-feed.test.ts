/** The feed has every change once, in an order that no late commit can break. */

import { createTaskBody } from '@rivulet/contract/tasks'
import { createTurnBody } from '@rivulet/contract/turns'
import { compareCursors } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle, Transaction } from '../connection/database.ts'
import { everyTenant } from '../connection/tenant.ts'
import { feed } from '../schema.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { createTurn } from '../tasks/accept/create-turn.ts'
import { claimTurn } from '../turns/claim-turn.ts'
import { finishTurn } from '../turns/finish-turn.ts'
import { releaseTurn } from '../turns/leases.ts'
import { readHeldFeed } from './held-feed.ts'
import { forgetFeed, readFeed, requireKept } from './read-feed.ts'

const tenant = 'default'
const request = createTaskBody.parse({ agent: 'echo', input: 'hello' })
let database: DatabaseHandle

/** Transactions of other databases on this server hold up the readers of the feed. */
const patience = { timeout: 60_000 }

beforeAll(async () => {
  database = await openStore()
})
beforeEach(async () => void (await database.db.delete(feed)))
afterAll(() => database.close())

test('a task that is accepted, claimed, released, claimed again, ended and removed has its entries in that order', async () => {
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, request, null)
  const { task, turn } = accepted?.accepted ?? {}
  if (!task || !turn) throw new Error('It was not accepted')
  const claim = (claimId: string) => claimTurn(database.db, { turnId: turn.id, claim: claimId, worker: 'w', leaseMs: 60_000 })
  const first = await claim('a')
  if (first.result !== 'claimed') throw new Error('It was not claimed')
  await releaseTurn(database.db, { turnId: turn.id, epoch: first.claimed.turn.epoch, claimId: 'a' })
  const second = await claim('b')
  if (second.result !== 'claimed') throw new Error('It was not claimed')
  const error = { code: 'agent_error', message: 'no' }
  const outcome = { status: 'failed', stopReason: 'error', error } as const
  await finishTurn(database.db, { turnId: turn.id, tenant, epoch: second.claimed.turn.epoch, canceling: false }, { outcome, messages: [] })
  await database.db.execute(sql`delete from tasks where id = ${task.id}`)
  const entries = await readAll()
  const about = { task: task.id, agent: 'echo' }
  expect(entries).toMatchObject([
    { type: 'task.created', ...about },
    { type: 'turn.queued', ...about, turn: 1, status: 'queued' },
    { type: 'turn.started', ...about, turn: 1, attempt: 1 },
    { type: 'turn.started', ...about, turn: 1, attempt: 1 },
    { type: 'turn.finished', ...about, turn: 1, status: 'failed', error: { code: 'agent_error' } },
    { type: 'task.deleted', ...about },
  ])
  expect(entries[2]).not.toHaveProperty('error')
})

test('every way to create a task and a turn adds its entries once, the task before its turn', async () => {
  const db = database.databaseFor(tenant)
  const { accept } = createTaskAcceptance(database.databaseFor)
  const fast = await Promise.all(Array.from({ length: 5 }, () => accept(tenant, request, null)))
  const slow = await db.transaction(tx => createTask(tx, tenant, { ...request, name: 'slow' }, 10))
  await db.transaction(tx => createTurn(tx, { tenant }, slow.task.id, createTurnBody.parse({ input: 'more' }), 10))
  const typesOf = async (id: string) => (await readAll()).filter(({ task }) => task === id).map(({ type, turn }) => [type, turn])
  for (const one of fast) {
    expect(await typesOf(one?.accepted.task.id ?? '')).toEqual([
      ['task.created', undefined],
      ['turn.queued', 1],
    ])
  }
  expect(await typesOf(slow.task.id)).toEqual([
    ['task.created', undefined],
    ['turn.queued', 1],
    ['turn.queued', 2],
  ])
})

test('an entry that is committed late is not skipped, though entries with higher numbers were committed before it', async () => {
  const late = await hold(async tx => void (await tx.execute(sql`select pg_current_xact_id()`)))
  const early = await addTask('early')
  // The transaction is older, and writes its entry only now: with a higher number than the one that is committed.
  const before = await read('0-0')
  expect(before.entries).toEqual([])
  const lateTask = await late.finish(tx => createTask(tx, tenant, { ...request, name: 'late' }, 10))
  const found = async () => (await read(before.next)).entries.filter(({ type }) => type === 'task.created').map(({ task }) => task)
  await expect.poll(found, patience).toEqual([lateTask.task.id, early])
})

test('a reader that reads all the time gets every entry once, whatever order transactions commit in', async () => {
  const seen: string[] = []
  let place = await read('0-0').then(({ next }) => next)
  let isOver = false
  const reading = (async () => {
    while (!isOver) {
      const { entries, next } = await readFeed(database.db, everyTenant, { after: place, limit: 3 })
      seen.push(...entries.filter(({ type }) => type === 'task.created').map(({ task }) => task))
      place = next
    }
  })()
  const written = await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      const open = await hold(async tx => void (await tx.execute(sql`select pg_current_xact_id()`)))
      for (let turn = 0; turn < (i * 7) % 5; turn += 1) await new Promise(resolve => setImmediate(resolve))
      return (await open.finish(tx => createTask(tx, tenant, { ...request, name: `n${i}` }, 10))).task.id
    }),
  )
  const isBehind = async () => compareCursors((await readAll()).at(-1)?.seq ?? '0-0', place) > 0
  await expect.poll(isBehind, patience).toBe(false)
  isOver = true
  await reading
  expect([...seen].sort()).toEqual([...written].sort())
})

test('a filter leaves entries out, and `next` is behind them', async () => {
  await addTask('one')
  await readAll()
  const none = await readFeed(database.db, tenant, { after: '0-0', limit: 10, types: ['task.deleted'] })
  expect(none.entries).toEqual([])
  expect((await read(none.next)).entries).toEqual([])
  const two = await addTask('two')
  const found = async () => (await read(none.next)).entries.map(({ task, type }) => [task, type])
  await expect.poll(found, patience).toEqual([
    [two, 'task.created'],
    [two, 'turn.queued'],
  ])
  expect((await readFeed(database.db, tenant, { after: '0-0', limit: 10, agent: 'other' })).entries).toEqual([])
})

test('entries are removed after their time, except the last of them, and a place before it is rejected', async () => {
  for (let i = 0; i < 6; i += 1) await addTask(`old-${i}`)
  await database.db.update(feed).set({ at: sql`now() - interval '8 days'` })
  await readAll()
  const first = await read('0-0')
  await addTask('new')
  expect(await forgetFeed(database.db, 5)).toBe(true)
  expect(await forgetFeed(database.db, 5)).toBe(true)
  expect(await forgetFeed(database.db, 5)).toBe(false)
  const kept = await database.db.select().from(feed)
  expect(kept.some(({ at }) => at.getTime() < Date.now() - 86_400_000)).toBe(true)
  expect(kept.length).toBeLessThan(14)
  await expect(requireKept(database.db, first.entries[0]?.seq ?? '0-0')).rejects.toMatchObject({ code: 'feed_expired' })
  await requireKept(database.db, '0-0')
  await requireKept(database.db, first.next)
})

test('old entries are removed by their age, also where there are fewer than are removed at once', async () => {
  await addTask('aged')
  await database.db.update(feed).set({ at: sql`now() - interval '8 days'` })
  await readAll()
  await addTask('young')
  expect(await forgetFeed(database.db, 5_000)).toBe(false)
  const kept = await database.db.select().from(feed)
  expect(kept.filter(({ at }) => at.getTime() < Date.now() - 86_400_000)).toHaveLength(1)
  expect(kept).toHaveLength(3)
})

test('an open transaction that holds entries back is named, with the age of the oldest of them', async () => {
  await readAll()
  const late = await hold(async tx => void (await tx.execute(sql`select pg_current_xact_id()`)))
  await addTask('held back')
  await database.db.update(feed).set({ at: sql`now() - interval '1 hour'` })
  const { seconds, holder } = await readHeldFeed(database.db)
  expect(seconds).toBeGreaterThanOrEqual(3_600)
  expect(holder).toMatch(/^process \d+ of /)
  await late.finish(async () => {})
  await expect.poll(async () => (await readHeldFeed(database.db)).seconds, patience).toBe(0)
})

test('a tenant reads its own entries only, by the condition and by row-level security', async () => {
  await addTask('mine')
  expect((await readFeed(database.databaseFor('rival'), everyTenant, { after: '0-0', limit: 10 })).entries).toEqual([])
  expect((await readFeed(database.db, 'rival', { after: '0-0', limit: 10 })).entries).toEqual([])
})

async function addTask(name: string): Promise<string> {
  return (await database.databaseFor(tenant).transaction(tx => createTask(tx, tenant, { ...request, name }, 10))).task.id
}

function read(after: `${number}-${number}`) {
  return readFeed(database.db, tenant, { after, limit: 100 })
}

async function readAll() {
  // Other databases of this server have transactions, too: wait until none is older than ours.
  await expect.poll(async () => (await read('0-0')).entries.length, patience).toBe((await database.db.select().from(feed)).length)
  return (await read('0-0')).entries
}

/** A transaction that has its number and stays open until `finish`. */
async function hold(begin: (tx: Transaction) => Promise<void>) {
  let finish: (work: (tx: Transaction) => Promise<unknown>) => void = () => {}
  const last = new Promise<(tx: Transaction) => Promise<unknown>>(resolve => {
    finish = resolve
  })
  let begun: () => void = () => {}
  const isOpen = new Promise<void>(resolve => {
    begun = resolve
  })
  const over = database.databaseFor(tenant).transaction(async tx => {
    await begin(tx)
    begun()
    return (await last)(tx)
  })
  await isOpen
  return {
    finish<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      finish(work)
      return over as Promise<T>
    },
  }
}
