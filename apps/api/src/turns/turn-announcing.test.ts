/** Ends that are said late, on a real Postgres and a real Redis. */
import { decodeByteText } from '@rivulet/broker'
import { createTaskBody } from '@rivulet/contract/tasks'
import { createTurnBody } from '@rivulet/contract/turns'
import { applyEvent, emptyState, type Message } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../../test/support/engines/database.ts'
import { openLogs } from '../../../../test/support/platform/logs.ts'
import { claimWithShare } from '../../test/give-share.ts'
import { openDatabase } from '../store/connection/database.ts'
import { turns } from '../store/schema.ts'
import { createTaskAcceptance } from '../store/tasks/accept/accept-tasks.ts'
import { createTurn } from '../store/tasks/accept/create-turn.ts'
import { beginCancel } from '../store/tasks/cancel-task.ts'
import { finishTurn } from '../store/turns/finish-turn.ts'
import { createTurnAnnouncing } from './turn-announcing.ts'

const tenant = 'default'
const message: Omit<Message, 'task' | 'index'> = {
  ...{ turn: 1, attempt: 1, author: 'agent', metadata: {}, status: 'aborted' },
  content: { type: 'text', text: 'hello', format: 'plain' },
  createdAt: new Date().toISOString(),
}

test('an end that is owed comes after the turns behind it, also one that is claimed and whose start is not announced yet', async () => {
  const { db, reader, announceOwed, announceStart, accept, claim } = await open()
  const { task, turn } = await accept()

  // No log was opened for it yet: the start opens one, under an epoch of its own.
  const first = (await announceStart(await claim(turn.id))) ?? expect.fail('It was not started')
  expect(first.turn.epoch).toBe(4)
  const next = await db.transaction(tx => createTurn(tx, { tenant }, task.id, createTurnBody.parse({ input: 'next' }), 10))
  const holding = { turnId: turn.id, tenant, epoch: first.turn.epoch, canceling: false }
  await finishTurn(db, holding, { outcome: { status: 'completed', stopReason: 'stop' }, messages: [] })
  const second = await claim(next.turn.id)
  const [owed] = await db.select().from(turns).where(eq(turns.id, turn.id))
  await announceOwed(owed ?? expect.fail('It is gone'))
  await announceStart(second)

  const said = (await reader.read(task.id, '0-0', 100)).map(({ json }) => JSON.parse(decodeByteText(json)))
  expect(said.map(event => `${event.type} ${event.turn}`)).toEqual([
    ...['turn.queued 1', 'turn.started 1'],
    ...['turn.queued 2', 'turn.finished 1', 'turn.started 2'],
  ])
})

test('a claim that is announced again after its log was lost gets another epoch, because viewers may have cursors of the lost one', async () => {
  const { announceStart, announcer, accept, claim } = await open()
  const { task, turn } = await accept()
  for (const epoch of [4, 6, 8]) {
    expect((await announceStart(await claim(turn.id)))?.turn.epoch).toBe(epoch)
    expect((await announceStart(await claim(turn.id)))?.turn.epoch).toBe(epoch)
    await announcer.remove(task.id)
  }
})

test('a log that was lost while a turn is being canceled is opened after that, because what the turn said may be folded already', async () => {
  const { db, reader, announcer, announceStart, announceEnds, announceOwed, accept, claim } = await open()
  const { task, turn } = await accept()
  const { epoch } = (await announceStart(await claim(turn.id)))?.turn ?? expect.fail('It was not started')
  const failed = { status: 'failed', stopReason: 'error' } as const
  const attempt = { outcome: failed, messages: [], retryAfterMs: () => 60_000 }
  await finishTurn(db, { turnId: turn.id, tenant, epoch, canceling: false }, attempt)
  await db.transaction(tx => createTurn(tx, { tenant }, task.id, createTurnBody.parse({ input: 'next' }), 10))
  const outcome = { status: 'canceled', stopReason: 'aborted' } as const
  const { seized, ended } = await db.transaction(tx => beginCancel(tx, { tenant }, task.id, outcome))
  const { claimed } = seized ?? expect.fail('The turn that began was not seized')
  await announcer.remove(task.id)
  expect(await announceOwed(ended[0] ?? expect.fail('The turn that waits has not ended'))).toBe(false)
  expect(await reader.state(task.id)).toBeNull()

  const said = { ...message, task: task.id, index: claimed.turn.firstIndex }
  const holding = { turnId: turn.id, tenant, epoch: claimed.turn.epoch, canceling: true }
  const finished = await finishTurn(db, holding, { outcome, messages: [said] })
  expect(await announceEnds(finished.result === 'committed' ? [finished.turn] : [], [])).toBe(true)
  expect(await reader.state(task.id)).toMatchObject({ isWhole: false })
})

test('of two rewinds at once, viewers see the one that the rows keep, whichever is announced first', async () => {
  const { db, reader, announceQueued, announceStart, announceEnds, accept, claim } = await open()
  const { task, turn } = await accept()
  const { epoch } = (await announceStart(await claim(turn.id)))?.turn ?? expect.fail('It was not started')
  const outcome = { status: 'completed', stopReason: 'stop' } as const
  const finished = await finishTurn(db, { turnId: turn.id, tenant, epoch, canceling: false }, { outcome, messages: [] })
  if (finished.result !== 'committed') expect.fail(finished.result)
  await announceEnds([finished.turn], [])
  const rewind = () =>
    db.transaction(async tx => {
      const { ended } = await beginCancel(tx, { tenant }, task.id, { status: 'canceled', stopReason: 'aborted' })
      const body = createTurnBody.parse({ input: 'again', after: 0, ifBusy: 'interrupt' })
      return { ended, turn: (await createTurn(tx, { tenant }, task.id, body, 10)).turn }
    })
  const [first, second] = [await rewind(), await rewind()]
  await announceQueued(second.turn, false)
  await announceQueued(first.turn, false)
  await announceEnds(second.ended, [])

  const log = await reader.read(task.id, '0-0', 100)
  const seen = log.reduce((state, { json, cursor }) => applyEvent(state, JSON.parse(decodeByteText(json)), cursor), emptyState)
  const rows = await db.select().from(turns).where(eq(turns.task, task.id)).orderBy(turns.number)
  const statuses = ['1 discarded', '2 discarded', '3 queued']
  expect(rows.map(({ number, discarded, status }) => `${number} ${discarded ? 'discarded' : status}`)).toEqual(statuses)
  expect(seen.turns.map(({ number, status }) => `${number} ${status}`)).toEqual(statuses)
})

test('more logs than the pool has connections are opened at once, because each opening needs only one connection', async () => {
  const { pools, announceStart, accept, claim } = await open()
  const claims = []
  for (let i = 0; i < (pools.server.options.max ?? 0) + 2; i += 1) claims.push(await claim((await accept()).turn.id))
  const started = await Promise.all(claims.map(announceStart))
  expect(started.map(each => each?.turn.epoch)).toEqual(claims.map(() => 4))
})

async function open() {
  const { url } = await createTestDatabase()
  const database = openDatabase({ url, onError: () => {} })
  onTestFinished(() => database.close())
  const { db, pools, databaseFor } = database
  await db.execute("insert into agents values ('echo', '')")
  const { announcer, reader } = openLogs()
  const announcing = createTurnAnnouncing({ db, announcer, reader, logger: pino({ level: 'silent' }) })
  const acceptance = createTaskAcceptance(databaseFor)
  return { db, pools, reader, announcer, ...announcing, accept, claim }

  async function accept() {
    const accepted = await acceptance.accept(tenant, createTaskBody.parse({ agent: 'echo' }), null)
    return accepted?.accepted ?? expect.fail('It was not accepted')
  }

  async function claim(id: string) {
    const claim = await claimWithShare(db, { turnId: id, claim: id, worker: 'w', leaseMs: 60_000 })
    return claim.result === 'claimed' ? claim.claimed : expect.fail(`It was not claimed: ${claim.result}`)
  }
}
