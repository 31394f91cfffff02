/** Turns that are claimed or ended at the same time: each as if it was alone, and none waits for another. */
import { createTaskBody } from '@rivulet/contract/tasks'
import { createTurnBody } from '@rivulet/contract/turns'
import type { Message } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anonymous } from '../../../test/anonymous.ts'
import { giveShare } from '../../../test/give-share.ts'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { everyone } from '../connection/tenant.ts'
import { messages, tasks, turns } from '../schema.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { createTurn } from '../tasks/accept/create-turn.ts'
import { lockTask } from '../tasks/held-task.ts'
import { type ClaimResult, claimTurn, createQueuedClaims } from './claim-turn.ts'
import type { Outcome } from './end-turn.ts'
import { finishTurn, waysToEnd } from './finish-turn.ts'
import { releaseTurn } from './leases.ts'

const tenant = 'default'
const count = 8
const completed: Outcome = { status: 'completed', stopReason: 'stop' }
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

type History = 'new' | 'with two inputs that it merges' | 'with a long input' | 'given back' | 'canceled' | 'too late'

test.each<History>(['new', 'with two inputs that it merges', 'with a long input', 'given back', 'canceled', 'too late'])(
  'a turn that is %s is claimed among others as it is alone',
  async history => {
    const claimQueued = createQueuedClaims(database.db)
    const [alone, among] = [await prepare(history), await prepare(history)]
    const others = await Promise.all(Array.from({ length: count }, () => prepare('new')))
    const own = [await claim(alone.turnId), await told(alone)]
    const [result, ...results] = await Promise.all([among, ...others].map(({ turnId }) => claim(turnId, 'c', claimQueued)))
    expect([anonymous(result), anonymous(await told(among))]).toEqual(own.map(anonymous))
    expect(new Set(results.map(idOf))).toEqual(new Set(others.map(({ turnId }) => turnId)))
  },
)

test('of two claims of the same turn at the same time one has it', async () => {
  const claimQueued = createQueuedClaims(database.db)
  const [one, other] = [await prepare('new'), await prepare('new')]
  const claims = [claim(one.turnId, 'a', claimQueued), claim(one.turnId, 'b', claimQueued), claim(other.turnId, 'c', claimQueued)]
  expect((await Promise.all(claims)).map(({ result }) => result)).toEqual(['claimed', 'leased', 'claimed'])
})

test.each(['with the others', 'before the others'])(
  'none waits for a turn whose task is held elsewhere, and that is claimed %s',
  async when => {
    const claimQueued = createQueuedClaims(database.db)
    const [held, ...others] = await Promise.all(Array.from({ length: count }, () => prepare('new')))
    if (!held) throw new Error('There is no turn')
    let late: Promise<ClaimResult> | null = null
    await database.db.transaction(async tx => {
      await lockTask(tx, everyone, held.task)
      late = claim(held.turnId, 'c', claimQueued)
      if (when === 'before the others') await new Promise(setImmediate)
      const claimed = await Promise.all(others.map(({ turnId }) => claim(turnId, 'c', claimQueued)))
      expect(claimed.map(({ result }) => result)).toEqual(others.map(() => 'claimed'))
    })
    expect(await late).toMatchObject({ result: 'claimed', claimed: { turn: { id: held.turnId } } })
  },
)

test('turns end together; one whose messages Postgres refuses ends as failed, and changes nothing about the others', async () => {
  const ways = waysToEnd(database.db)
  const begun = await Promise.all(Array.from({ length: count }, () => begin()))
  const results = await Promise.all(
    begun.map(({ turnId, task, epoch, firstIndex }, i) => {
      const said =
        i === 3 ? [message(task, firstIndex), message(task, firstIndex)] : [message(task, firstIndex), message(task, firstIndex + 1)]
      return finishTurn(database.db, { turnId, tenant, epoch, canceling: false, claim: 'c' }, { outcome: completed, messages: said }, ways)
    }),
  )
  const ends = results.map(end => (end.result === 'committed' ? [end.turn.id, end.turn.status, end.turn.error?.code] : [end.result]))
  expect(ends).toEqual(begun.map(({ turnId }, i) => (i === 3 ? [turnId, 'failed', 'result_rejected'] : [turnId, 'completed', undefined])))
  for (const [i, { task }] of begun.entries()) expect((await said(task)).length).toBe(i === 3 ? 1 : 3)
})

test('of two ends of the same turn at the same time one is committed, and only what it says is stored', async () => {
  const ways = waysToEnd(database.db)
  const [one, other] = [await begin(), await begin()]
  const end = ({ turnId, task, epoch, firstIndex }: typeof one, claimId: string, text: string) =>
    finishTurn(
      database.db,
      { turnId, tenant, epoch, canceling: false, claim: claimId },
      { outcome: completed, messages: [message(task, firstIndex, text)] },
      ways,
    )
  const results = await Promise.all([end(one, 'stranger', 'no'), end(one, 'c', 'yes'), end(other, 'c', 'yes'), end(one, 'c', 'again')])
  expect(results.map(({ result }) => result).sort()).toEqual(['already', 'committed', 'committed', 'superseded'])
  const [, first, , last] = results.map(({ result }) => result)
  const stored = (await said(one.task)).filter(({ author }) => author === 'agent').map(({ content }) => content)
  expect([first, last, stored]).toEqual(first === 'committed' ? [first, 'already', [text('yes')]] : ['already', last, [text('again')]])
})

test('a long message ends its turn alone, and is stored whole', async () => {
  const { turnId, task, epoch, firstIndex } = await begin()
  const long = 'word '.repeat(200_000)
  const end = { outcome: completed, messages: [message(task, firstIndex, long)] }
  expect(await finishTurn(database.db, { turnId, tenant, epoch, canceling: false }, end)).toMatchObject({ result: 'committed' })
  expect((await said(task))[1]?.content).toEqual(text(long))
})

async function prepare(history: History): Promise<{ turnId: string; task: string }> {
  const { db, databaseFor } = database
  const input = history === 'with a long input' ? 'word '.repeat(100_000) : 'hello'
  const accepted = await createTaskAcceptance(databaseFor).accept(tenant, createTaskBody.parse({ agent: 'echo', input }), null)
  const { task, turn } = accepted?.accepted ?? expect.fail('It was not accepted')
  await giveShare(db, turn.id)
  if (history === 'with two inputs that it merges')
    for (const input of ['one', 'two'])
      await db.transaction(tx =>
        createTurn(tx, { tenant }, task.id, createTurnBody.parse({ input, params: { input }, ifBusy: 'merge' }), 10),
      )
  if (history === 'given back') {
    const first = await claim(turn.id, 'before')
    const epoch = first.result === 'claimed' ? first.claimed.turn.epoch : 0
    await releaseTurn(db, { turnId: turn.id, epoch, claimId: 'before' })
    await giveShare(db, turn.id)
  }
  if (history === 'canceled') await db.update(turns).set({ canceling: true }).where(eq(turns.id, turn.id))
  if (history === 'too late')
    await db
      .update(turns)
      .set({ startedAt: new Date(0), deadline: new Date(0) })
      .where(eq(turns.id, turn.id))
  return { turnId: turn.id, task: task.id }
}

async function begin() {
  const { turnId, task } = await prepare('new')
  const begun = await claim(turnId)
  if (begun.result !== 'claimed') throw new Error(`It is ${begun.result}`)
  const { epoch, firstIndex } = begun.claimed.turn
  return { turnId, task, epoch, firstIndex }
}

function claim(turnId: string, claimId = 'c', claimQueued?: ReturnType<typeof createQueuedClaims>): Promise<ClaimResult> {
  return claimTurn(database.db, { turnId, claim: claimId, worker: 'w', leaseMs: 60_000 }, claimQueued)
}

function idOf(result: ClaimResult): string | undefined {
  return result.result === 'claimed' ? result.claimed.turn.id : undefined
}

async function told({ task }: { task: string }): Promise<unknown> {
  const { db } = database
  return {
    tasks: await db.select().from(tasks).where(eq(tasks.id, task)),
    turns: await db.select().from(turns).where(eq(turns.task, task)).orderBy(turns.number),
    messages: await said(task),
  }
}

function said(task: string) {
  return database.db.select().from(messages).where(eq(messages.task, task)).orderBy(messages.index)
}

function text(words: string) {
  return { type: 'text', text: words, format: 'plain' } as const
}

function message(task: string, index: number, words = 'hello'): Message {
  return {
    ...{ task, index, turn: 1, attempt: 1, author: 'agent', metadata: {}, status: 'complete', content: text(words) },
    createdAt: new Date().toISOString(),
  }
}
