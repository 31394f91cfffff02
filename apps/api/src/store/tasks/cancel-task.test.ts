/** A turn that is taken from its worker to be ended: only as long as the reason for it holds. */
import { createTaskBody } from '@rivulet/contract/tasks'
import { createTurnBody } from '@rivulet/contract/turns'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import { queuedEvents } from '../../turns/turn-events.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import type { TurnRow } from '../rows.ts'
import { claimTurn } from '../turns/claim-turn.ts'
import { expiredTurns, extendLeases, isExpired } from '../turns/leases.ts'
import { createTaskAcceptance } from './accept/accept-tasks.ts'
import { createTurn } from './accept/create-turn.ts'
import { beginCancel, seizeTurn } from './cancel-task.ts'

const tenant = 'default'
const outcome = { status: 'failed', stopReason: 'error', error: { code: 'worker_lost', message: 'gone' } } as const
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('a worker that has renewed its lease since it was found to be gone keeps its turn', async () => {
  const { db } = database
  const turn = await expiredTurn()
  expect(await extendLeases(db, 'w', [{ turnId: turn.id, epoch: turn.epoch ?? 0, claimId: 'c' }], 60_000)).toEqual({
    lost: [],
    takenBack: [],
  })
  expect(await seizeTurn(db, turn, outcome, isExpired)).toBeNull()
})

test('one that has not loses it, and it is taken once', async () => {
  const { db } = database
  const turn = await expiredTurn()
  expect(await seizeTurn(db, turn, outcome, isExpired)).toMatchObject({ claimed: { turn: { id: turn.id, canceling: true } }, outcome })
  expect(await seizeTurn(db, turn, outcome, isExpired)).toBeNull()
})

test('a turn that another worker has claimed since is not taken', async () => {
  const turn = await expiredTurn()
  expect(await seizeTurn(database.db, { ...turn, epoch: 1 }, outcome)).toBeNull()
})

test('a cancel of turns with large values does not load these values', async () => {
  const request = createTaskBody.parse({ agent: 'echo', input: 'small', params: { note: 'x'.repeat(100_000) } })
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, request, null)
  const task = accepted?.accepted.task.id ?? ''
  const body = createTurnBody.parse({ input: 'y'.repeat(100_000) })
  await database.databaseFor(tenant).transaction(tx => createTurn(tx, { tenant }, task, body, 10))
  const canceled = { status: 'canceled', stopReason: 'aborted' } as const
  const { ended } = await database.databaseFor(tenant).transaction(tx => beginCancel(tx, { tenant }, task, canceled))
  expect(ended).toMatchObject([
    { number: 1, status: 'canceled', params: null, input: { text: 'small' }, hasLargeInput: false },
    { number: 2, status: 'canceled', params: null, input: null, hasLargeInput: true },
  ])
  expect(ended.flatMap(queuedEvents).map(({ event }) => event)).toMatchObject([{ input: { text: 'small' } }, { omitted: ['input'] }])
})

async function expiredTurn(): Promise<TurnRow> {
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, createTaskBody.parse({ agent: 'echo' }), null)
  const id = accepted?.accepted.turn.id ?? ''
  await claimTurn(database.db, { turnId: id, claim: 'c', worker: 'w', leaseMs: -1 })
  const turn = (await expiredTurns(database.db, { leaseMs: 60_000, limit: 100 })).find(row => row.id === id)
  if (!turn) throw new Error('Its lease has not ended')
  return turn
}
