/** What a task costs Postgres, counted: what is in one round trip today stays so. No clock is looked at. */
import { randomUUID } from 'node:crypto'
import type { Holding } from '@rivulet/contract/internal'
import { createTaskBody } from '@rivulet/contract/tasks'
import { createTurnBody } from '@rivulet/contract/turns'
import type { Message } from '@rivulet/protocol'
import { eq, sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { giveShare } from '../../../test/give-share.ts'
import { openStore } from '../../../test/open-store.ts'
import { createStoredTaskReader } from '../reads/stored-task.ts'
import { idempotencyKeys, messages, outbox, tasks, turns } from '../schema.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { createTurn } from '../tasks/accept/create-turn.ts'
import { drainOutbox, type Intent, removeIntents } from '../tasks/outbox.ts'
import { rememberStep } from '../tasks/steps.ts'
import { markAnnounced } from '../turns/announcements.ts'
import { claimTurn, createQueuedClaims } from '../turns/claim-turn.ts'
import { createEndAtOnce, finishTurn } from '../turns/finish-turn.ts'
import { countDeath, extendLeases, isExpired, releaseTurn } from '../turns/leases.ts'
import type { DatabaseHandle } from './database.ts'

const tenant = 'default'
const request = createTaskBody.parse({ agent: 'echo', input: 'hello', metadata: { a: 1 }, params: [null] })
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('a task is accepted in one round trip, with its answer under its key', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const count = await countRoundTrips()
  const key = { tenant, key: randomUUID(), fingerprint: 'f' }
  const accepted = await accept(tenant, request, key)
  expect(count()).toBe(1)
  const [kept] = await database.db.select().from(idempotencyKeys)
  expect([kept?.status, kept?.body]).toEqual([201, accepted?.response.body])
  const [task] = await database.db.select().from(tasks)
  expect(task).toEqual(accepted?.accepted.task)
})

test('fifty tasks that come together share it', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const count = await countRoundTrips()
  const accepted = await Promise.all(Array.from({ length: 50 }, () => accept(tenant, request, null)))
  expect(count()).toBe(1)
  expect(new Set(accepted.map(one => one?.accepted.turn.id)).size).toBe(50)
})

test('what cannot be accepted this way has changed nothing: an unknown agent, a key that was used, a name', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const key = { tenant, key: randomUUID(), fingerprint: 'f' }
  await accept(tenant, request, key)
  const before = await stored()
  expect(await accept(tenant, { ...request, agent: 'unknown' }, { ...key, key: randomUUID() })).toBeNull()
  expect(await accept(tenant, request, key)).toBeNull()
  expect(await accept(tenant, { ...request, name: 'one' }, null)).toBeNull()
  expect(await stored()).toEqual(before)
})

test('a key without a request within a day is free again', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const key = { tenant, key: randomUUID(), fingerprint: 'f' }
  await accept(tenant, request, key)
  await database.db.execute("update idempotency_keys set created_at = now() - interval '25 hours'")
  expect(await accept(tenant, request, key)).not.toBeNull()
})

test('the intents of accepted and sent turns are removed in one, without waiting for those that another process holds', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const accepted = await Promise.all(Array.from({ length: 50 }, () => accept(tenant, request, null)))
  const [first, ...others] = accepted.flatMap(each => each?.intent ?? [])
  const count = await countRoundTrips()
  await removeIntents(database.db, others)
  expect(count()).toBe(1)
  const drained = await drainOutbox(database.db, { limit: 1_000, olderThanMs: 0 }, () => removeIntents(database.db, [first as Intent]))
  expect(drained.filter(({ id }) => others.some(other => other.id === id) || id === first?.id).map(({ id }) => id)).toEqual([first?.id])
  expect(await database.db.select().from(outbox)).toEqual([])
})

test('everything that waits for the queue is handed over in four', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  await Promise.all(Array.from({ length: 50 }, () => accept(tenant, request, null)))
  const count = await countRoundTrips()
  const sent = await drainOutbox(database.db, { limit: 1_000, olderThanMs: 0 }, async () => {})
  expect(sent.length).toBeGreaterThanOrEqual(50)
  expect(count()).toBe(4)
})

test('a turn is claimed in one, ended in one, and noted as announced with others', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const accepted = await accept(tenant, request, null)
  const turnId = accepted?.accepted.turn.id ?? ''
  const count = await countRoundTrips()
  const claim = await claimTurn(database.db, { turnId, claim: 'c', worker: 'w', leaseMs: 1_000 })
  expect(count()).toBe(1)
  if (claim.result !== 'claimed') throw new Error('It was not claimed')
  const { epoch, task, firstIndex } = claim.claimed.turn
  const said: Message = {
    ...{ task, index: firstIndex, turn: 1, attempt: 1, author: 'agent', metadata: {}, status: 'complete' },
    content: { type: 'text', text: 'hello', format: 'plain' },
    createdAt: new Date().toISOString(),
  }
  const outcome = { status: 'completed', stopReason: 'stop' } as const
  const ended = await finishTurn(database.db, { turnId, tenant, epoch, canceling: false }, { outcome, messages: [said] })
  expect(count()).toBe(2)
  if (ended.result !== 'committed') throw new Error('It was not ended')
  await markAnnounced(database.db, [{ turnId, cursor: '2-3' }])
  expect(count()).toBe(3)
  expect(ended.turn).toMatchObject({ agent: 'echo', status: 'completed', finishedAt: expect.any(Date), epoch: 2 })
  expect((await database.db.select().from(messages)).map(({ content }) => content)).toEqual([request.input, said.content])
})

test('fifty turns that are claimed together share one, and one when they end together', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const accepted = await Promise.all(Array.from({ length: 50 }, () => accept(tenant, request, null)))
  const ids = accepted.flatMap(one => one?.accepted.turn.id ?? [])
  const [claimQueued, ways] = [createQueuedClaims(database.db), [createEndAtOnce(database.db)]]
  const count = await countRoundTrips()
  const claims = await Promise.all(
    ids.map(turnId => claimTurn(database.db, { turnId, claim: turnId, worker: 'w', leaseMs: 1_000 }, claimQueued)),
  )
  expect(count()).toBe(1)
  const outcome = { status: 'completed', stopReason: 'stop' } as const
  const ended = await Promise.all(
    claims.map(claim => {
      if (claim.result !== 'claimed') throw new Error('It was not claimed')
      const { id: turnId, epoch } = claim.claimed.turn
      return finishTurn(database.db, { turnId, tenant, epoch, canceling: false, claim: turnId }, { outcome, messages: [] }, ways)
    }),
  )
  expect(count()).toBe(2)
  expect(new Set(ended.map(({ result }) => result))).toEqual(new Set(['committed']))
})

test('a turn that was given back is claimed in one, too: under its indexes, with its input and what its steps came to', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const accepted = await accept(tenant, request, null)
  const turnId = accepted?.accepted.turn.id ?? ''
  const claim = (name: string) => claimTurn(database.db, { turnId, claim: name, worker: name, leaseMs: 1_000 })
  const first = await claim('a')
  if (first.result !== 'claimed') throw new Error('It was not claimed')
  await rememberStep(database.db, { turnId, claimId: 'a', name: 'one', memory: '{"a":"\\u0000"}' }, 1_000)
  expect(await releaseTurn(database.db, { turnId, epoch: 2, claimId: 'a' })).toBe(true)
  const count = await countRoundTrips()
  const second = await claim('b')
  expect(count()).toBe(1)
  if (second.result !== 'claimed') throw new Error('It was not claimed')
  expect(second.steps).toEqual([{ name: 'one', memory: '{"a":"\\u0000"}' }])
  expect(second.claimed.inputs).toEqual(first.claimed.inputs)
  const { firstIndex, startedAt } = first.claimed.turn
  expect(second.claimed.turn).toMatchObject({ attempt: 1, epoch: 6, firstIndex, startedAt, worker: 'b' })
  expect([second.claimed.task.epoch, second.isAgain]).toEqual([6, false])

  expect(await claim('a')).toEqual({ result: 'leased' })
  const { turn: held } = second.claimed
  const again = { claimed: { ...second.claimed, turn: { ...held, leaseUntil: expect.any(Date) } }, isAgain: true }
  expect(await claim('b')).toMatchObject(again)
})

test('a worker that was late takes all its turns back in two', async () => {
  const { db, leases, databaseFor } = database
  const { accept } = createTaskAcceptance(databaseFor)
  const held: Holding[] = []
  // One after the other: twenty at once may wait for a connection longer than the pool lets them.
  for (let i = 0; i < 20; i += 1) {
    const turnId = (await accept(tenant, request, null))?.accepted.turn.id ?? ''
    const claim = await claimTurn(db, { turnId, claim: 'c', worker: 'late', leaseMs: -1 })
    if (claim.result !== 'claimed') throw new Error(`It was ${claim.result}`)
    const { turn } = claim.claimed
    await countDeath(db, turn, 'silent', isExpired, { status: 'lost', error: { code: 'worker_lost', message: 'Late' }, messages: [] })
    held.push({ turnId, epoch: turn.epoch ?? 0, claimId: 'c' })
  }
  const count = await countRoundTrips()
  expect((await extendLeases(leases, 'late', held, 60_000)).takenBack).toHaveLength(20)
  expect(count()).toBe(2)
})

test('where tasks stand is read in one, also of many', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  const accepted = await Promise.all(Array.from({ length: 20 }, () => accept(tenant, request, null)))
  const readTask = createStoredTaskReader(database.databaseFor, 1_000)
  const count = await countRoundTrips()
  const found = await Promise.all(accepted.map(each => readTask(tenant, each?.accepted.task.id ?? '')))
  expect(count()).toBe(1)
  expect(found.map(({ task, turns }) => [task.id, turns.map(({ id }) => id)])).toEqual(
    accepted.map(each => [each?.accepted.task.id, [each?.accepted.turn.id]]),
  )
})

test('a turn that is too late, or not the next of its task, is not claimed', async () => {
  const { db, databaseFor } = database
  const accepted = await createTaskAcceptance(databaseFor).accept(tenant, request, null)
  const { task, turn } = accepted?.accepted ?? {}
  if (!task || !turn) throw new Error('It was not accepted')
  const second = await databaseFor(tenant).transaction(tx =>
    createTurn(tx, { tenant }, task.id, createTurnBody.parse({ input: 'more' }), 10),
  )
  const claim = (id: string) => claimTurn(db, { turnId: id, claim: 'c', worker: 'w', leaseMs: 1_000 })
  expect(await claim(second.turn.id)).toEqual({ result: 'settled' })
  await db
    .update(turns)
    .set({ startedAt: new Date(0), deadline: new Date(0) })
    .where(eq(turns.id, turn.id))
  expect(await claim(turn.id)).toEqual({ result: 'settled' })
  expect(await db.select().from(messages).where(eq(messages.task, task.id))).toEqual([])
})

test('a turn that is not due is not claimed, and the wait is what Postgres makes of it, whatever the clock of this process', async () => {
  const { db, databaseFor } = database
  vi.useFakeTimers({ now: 0, toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const accepted = await createTaskAcceptance(databaseFor).accept(tenant, { ...request, delayMs: 60_000, timeoutMs: 60_000 }, null)
  const turnId = accepted?.accepted.turn.id ?? ''
  await giveShare(db, turnId)
  const claim = () => claimTurn(db, { turnId, claim: 'c', worker: 'w', leaseMs: 1_000 })
  const early = await claim()
  if (early.result !== 'early') throw new Error(`It is ${early.result}`)
  expect([early.waitMs > 30_000, early.waitMs <= 60_000]).toEqual([true, true])
  await db
    .update(turns)
    .set({ runAt: sql`now() - interval '5 seconds'`, queuedAt: sql`now() - interval '7 seconds'` })
    .where(eq(turns.id, turnId))
  for (const isAgain of [false, true]) {
    const claimed = await claim()
    if (claimed.result !== 'claimed') throw new Error(`It is ${claimed.result}`)
    const { sinceDueMs, sinceQueuedMs, timeLeftMs } = claimed.clock
    expect([claimed.isAgain, sinceDueMs >= 5_000, sinceQueuedMs - sinceDueMs]).toEqual([isAgain, true, 2_000])
    expect([timeLeftMs > 30_000, timeLeftMs <= 60_000]).toEqual([true, true])
  }
})

test('times are those of Postgres, in the rows and in the answer that is kept under a key', async () => {
  vi.useFakeTimers({ now: 0, toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const key = { tenant, key: randomUUID(), fingerprint: 'f' }
  const asked = { ...request, delayMs: 4_000, timeoutMs: 3_000, metadata: { at: '1970-01-01T00:00:00.000Z' } }
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, asked, key)
  const { id: turnId } = accepted?.accepted.turn ?? {}
  const [turn] = await database.db
    .select()
    .from(turns)
    .where(eq(turns.id, turnId ?? ''))
  expect(turn).toEqual(accepted?.accepted.turn)
  const { queuedAt, runAt, deadline } = turn ?? {}
  expect(queuedAt?.getTime()).toBeGreaterThan(1_700_000_000_000)
  expect([Number(runAt) - Number(queuedAt), Number(deadline) - Number(runAt)]).toEqual([4_000, 3_000])
  const [kept] = await database.db.select().from(idempotencyKeys).where(eq(idempotencyKeys.key, key.key))
  expect(kept?.body).toEqual(accepted?.response.body)
  expect(kept?.body).toMatchObject({ task: { createdAt: queuedAt?.toISOString(), metadata: asked.metadata } })
})

async function stored(): Promise<unknown> {
  const { rows } = await database.db.execute(
    'select (select count(*) from tasks) as tasks, (select count(*) from turns) as turns, (select count(*) from idempotency_keys) as keys',
  )
  return rows
}

/** How often a caller waits for Postgres: a statement that is sent while another is in flight costs no more. */
async function countRoundTrips(): Promise<() => number> {
  // First: a pool closes a connection that is idle for 10 s, and to open one and set whose rows it sees takes round trips, too.
  const { db, leases, databaseFor } = database
  await Promise.all([databaseFor(tenant), db, leases].map(each => each.select({ one: sql`1` }).from(tasks).limit(1)))
  const underWay = new Map<unknown, number>()
  let trips = 0
  const query = Client.prototype.query as (...args: unknown[]) => Promise<unknown>
  const spy = vi.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...args: unknown[]) {
    const waiting = underWay.get(this) ?? 0
    if (waiting === 0) trips += 1
    underWay.set(this, waiting + 1)
    return query.apply(this, args).finally(() => underWay.set(this, (underWay.get(this) ?? 1) - 1))
  } as never)
  onTestFinished(() => void spy.mockRestore())
  return () => trips
}
