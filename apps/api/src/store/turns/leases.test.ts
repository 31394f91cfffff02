/** A lease that ends: whose death that is, and what a worker that was only late gets back. */
import { createTaskBody } from '@rivulet/contract/tasks'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import { registerWorker } from '../agents/agents.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { everyTenant } from '../connection/tenant.ts'
import { getTask } from '../reads/tasks.ts'
import { findTurn } from '../reads/turns.ts'
import type { TurnRow } from '../rows.ts'
import { turns } from '../schema.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { listAttempts } from './attempts.ts'
import { claimTurn } from './claim-turn.ts'
import { countDeath, expiredTurns, extendLeases, isExpired, isHeldUnder, releaseTurn } from './leases.ts'
import { reopenTurn } from './reopen-turn.ts'

const leaseMs = 60_000
const ended = -1
const lost = { status: 'lost', error: { code: 'worker_lost', message: 'It died' }, messages: [] } as const

let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

describe('a worker whose lease has ended', () => {
  test('keeps the turn with its next heartbeat, as long as nothing was taken from it', async () => {
    const turn = await claimed(ended)
    expect(await beat(turn)).toEqual({ lost: [], takenBack: [] })
    expect((await found(turn)).leaseUntil?.getTime()).toBeGreaterThan(Date.now())
  })

  test('keeps the turn while its log is being opened anew, although its heartbeats still carry the epoch before', async () => {
    const turn = await claimed(ended)
    const reopened = await reopenTurn(database.db, holdingOf(turn))
    expect(reopened?.turn.epoch).toBeGreaterThan(turn.epoch ?? 0)
    expect(await beat(turn)).toEqual({ lost: [], takenBack: [] })
    expect((await found(turn)).leaseUntil?.getTime()).toBeGreaterThan(Date.now())
    expect((await expiredTurns(database.db, { leaseMs, limit: 100 })).map(({ id }) => id)).not.toContain(turn.id)
  })

  test('takes back a turn whose log was being opened anew', async () => {
    const turn = await claimed(ended)
    const reopened = await reopenTurn(database.db, holdingOf(turn))
    await countDeath(database.db, turn, 'silent', isExpired, lost)
    expect(await beat(turn)).toMatchObject({ lost: [], takenBack: [{ id: turn.id }] })
    expect(await found(turn)).toMatchObject({ status: 'running', deaths: 0, epoch: reopened?.turn.epoch, claim: turn.claim })
  })

  test('takes it back where no other worker has claimed it, and nothing died', async () => {
    const turn = await claimed(ended)
    expect(await countDeath(database.db, turn, 'silent', isExpired, lost)).toBe(true)
    expect(await found(turn)).toMatchObject({ status: 'queued', deaths: 1, leaseUntil: null })
    expect(await attemptsOf(turn)).toMatchObject([{ attempt: 1, status: 'lost', worker: 'w' }])
    expect(await beat(turn)).toMatchObject({ lost: [], takenBack: [{ id: turn.id }] })
    expect(await found(turn)).toMatchObject({ status: 'running', deaths: 0, attempt: 1, epoch: turn.epoch, claim: turn.claim })
    expect((await getTask(database.db, everyTenant, turn.task)).status).toBe('running')
    expect(await attemptsOf(turn)).toMatchObject([{ attempt: 1, status: 'running' }])
    // The job that was sent for it in between finds it taken.
    expect(await claimTurn(database.db, { turnId: turn.id, claim: 'other', worker: 'w2', leaseMs })).toEqual({ result: 'leased' })
  })

  test('has lost it where another has claimed it', async () => {
    const turn = await claimed(ended)
    await countDeath(database.db, turn, 'silent', isExpired, lost)
    await claimTurn(database.db, { turnId: turn.id, claim: 'other', worker: 'w2', leaseMs })
    expect(await beat(turn)).toEqual({ lost: [turn.id], takenBack: [] })
    expect(await found(turn)).toMatchObject({ status: 'running', worker: 'w2', deaths: 1 })
  })

  test('has lost it where the turn has lost its share of the workers, which another turn may have', async () => {
    const turn = await claimed(ended)
    await countDeath(database.db, turn, 'silent', isExpired, lost)
    await database.db.update(turns).set({ sent: null }).where(eq(turns.id, turn.id))
    expect(await beat(turn)).toEqual({ lost: [turn.id], takenBack: [] })
    expect((await found(turn)).status).toBe('queued')
  })

  test.each([
    ['that it gave back', (turn: TurnRow) => releaseTurn(database.db, holdingOf(turn))],
    ['that blocked it', (turn: TurnRow) => countDeath(database.db, turn, 'dead', isHeldUnder(holdingOf(turn)), lost)],
  ])('does not take back a turn %s', async (_, release) => {
    const turn = await claimed(leaseMs)
    expect(await release(turn)).toBe(true)
    expect(await beat(turn)).toEqual({ lost: [turn.id], takenBack: [] })
    expect((await found(turn)).status).toBe('queued')
  })
})

test('many turns are taken back together, each by itself: one that another has claimed is lost, one whose task is locked waits', async () => {
  const late = await Promise.all(Array.from({ length: 20 }, () => claimed(ended)))
  for (const turn of late) await countDeath(database.db, turn, 'silent', isExpired, lost)
  const [taken, locked, ...free] = late as [TurnRow, TurnRow, ...TurnRow[]]
  await claimTurn(database.db, { turnId: taken.id, claim: 'other', worker: 'w2', leaseMs })
  await database.databaseFor('default').transaction(async tx => {
    await tx.execute(`select from tasks where id = '${locked.task}' for update`)
    const { lost, takenBack } = await extendLeases(database.leases, 'w', late.map(holdingOf), leaseMs)
    expect([lost, takenBack.map(({ id }) => id).sort()]).toEqual([[taken.id], free.map(({ id }) => id).sort()])
  })
  expect((await found(locked)).status).toBe('queued')
  expect(await beat(locked)).toMatchObject({ lost: [], takenBack: [{ id: locked.id }] })
  for (const turn of [locked, ...free]) expect(await found(turn)).toMatchObject({ status: 'running', deaths: 0, epoch: turn.epoch })
})

test('a row that is locked leaves what was reclaimed for the next heartbeat, and what is held is renewed', async () => {
  const [held, reclaimed] = [await claimed(ended), await claimed(ended)]
  await countDeath(database.db, reclaimed, 'silent', isExpired, lost)
  await database.databaseFor('default').transaction(async tx => {
    await tx.execute(`select from turns where id = '${reclaimed.id}' for update`)
    expect(await extendLeases(database.leases, 'w', [held, reclaimed].map(holdingOf), leaseMs)).toEqual({ lost: [], takenBack: [] })
  })
  expect((await found(held)).leaseUntil?.getTime()).toBeGreaterThan(Date.now())
  expect(await beat(reclaimed)).toMatchObject({ lost: [], takenBack: [{ id: reclaimed.id }] })
})

test('of two claims of a turn, the earlier is lost, and the later keeps it', async () => {
  const turn = await claimed(ended)
  const stale = { ...holdingOf(turn), claimId: 'earlier' }
  expect(await extendLeases(database.leases, 'w', [holdingOf(turn), stale], leaseMs)).toEqual({ lost: [turn.id], takenBack: [] })
  expect((await found(turn)).leaseUntil?.getTime()).toBeGreaterThan(Date.now())
})

test('a row that is locked keeps no other lease from being renewed, and is not lost', async () => {
  const [locked, free] = [await claimed(ended), await claimed(ended)]
  await database.databaseFor('default').transaction(async tx => {
    await tx.execute(`select from turns where id = '${locked.id}' for update`)
    const held = [locked, free].map(holdingOf)
    expect(await extendLeases(database.leases, 'w', held, leaseMs)).toEqual({ lost: [], takenBack: [] })
  })
  expect((await found(free)).leaseUntil?.getTime()).toBeGreaterThan(Date.now())
  expect((await found(locked)).leaseUntil?.getTime()).toBeLessThan(Date.now())
})

test('heartbeats have connections of their own: they are answered when all others are taken', async () => {
  const turn = await claimed(leaseMs)
  const clients = await Promise.all(Array.from({ length: 10 }, () => database.pools.server.connect()))
  expect(await beat(turn)).toEqual({
    lost: [],
    takenBack: [],
  })
  for (const client of clients) client.release()
})

test('a worker that was heard of long after it last renewed a lease lives, and has forgotten the turn', async () => {
  await registerWorker(database.db, { tenant: everyTenant, agents: null }, null, { worker: 'alive', agents: [] })
  // It renewed its lease, was heard of with the same beat, and died: both are as old.
  const died = await claimed(ended, 'alive')
  await database.db.execute(`update workers set seen_at = now() - interval '${leaseMs} ms' where id = 'alive'`)
  const expired = async () => (await expiredTurns(database.db, { leaseMs, limit: 100 })).find(({ id }) => id === died.id)?.isForgotten
  expect(await expired()).toBe(false)
  await database.db.execute(`update workers set seen_at = now() where id = 'alive'`)
  expect(await expired()).toBe(true)
})

async function claimed(lease: number, worker = 'w'): Promise<TurnRow> {
  const accepted = await createTaskAcceptance(database.databaseFor).accept('default', createTaskBody.parse({ agent: 'echo' }), null)
  const id = accepted?.accepted.turn.id ?? ''
  await claimTurn(database.db, { turnId: id, claim: 'c', worker, leaseMs: lease })
  return found({ id })
}

async function found({ id }: { id: string }): Promise<TurnRow> {
  const turn = await findTurn(database.db, id)
  if (!turn) throw new Error('The turn is gone')
  return turn
}

function beat(turn: TurnRow) {
  return extendLeases(database.leases, 'w', [holdingOf(turn)], leaseMs)
}

function holdingOf({ id, epoch, claim }: TurnRow) {
  return { turnId: id, epoch: epoch ?? 0, claimId: claim ?? '' }
}

function attemptsOf({ task, number }: TurnRow) {
  return listAttempts(database.db, everyTenant, task, number, true)
}
