/** Which worker may claim a turn that another one began. */
import { createTaskBody } from '@rivulet/contract/tasks'
import type { TurnId } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { giveShare } from '../../../test/give-share.ts'
import { openStore } from '../../../test/open-store.ts'
import { registerWorker } from '../agents/agents.ts'
import { listVersions } from '../agents/versions.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { everyTenant } from '../connection/tenant.ts'
import { findTurn } from '../reads/turns.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { claimTurn } from './claim-turn.ts'
import { releaseTurn } from './leases.ts'

const minute = 60_000

let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
  for (const [worker, version] of Object.entries({ old: '1', older: '1', new: '2' })) await greet(worker, version)
})
afterAll(() => database.close())

test('a turn of a pinned agent is for workers of the version that began it, as long as one of them runs', async () => {
  const turnId = await begun('pinned', 'old')
  await release(turnId)
  expect(await claim(turnId, 'new')).toEqual({ result: 'early', waitMs: 1_000 })
  expect(await claim(turnId, 'older')).toMatchObject({ result: 'claimed' })
  await release(turnId)
  await database.db.execute(`update workers set seen_at = now() - interval '2 minutes' where version = '1'`)
  expect(await claim(turnId, 'new')).toMatchObject({ result: 'claimed' })
  expect((await findTurn(database.db, turnId))?.version).toBe('1')
  await greet('old', '1')
  await greet('older', '1')
})

test('a turn of any other agent is for every worker, and has the version that began it', async () => {
  const turnId = await begun('free', 'old')
  await release(turnId)
  expect(await claim(turnId, 'new')).toMatchObject({ result: 'claimed', claimed: { turn: { version: '1' } } })
})

test('a version is drained when no turn is left that began with it', async () => {
  const turnId = await begun('pinned', 'new')
  const ofNew = async () => (await listVersions(database.db, everyTenant, minute)).find(({ version }) => version === '2')
  expect(await ofNew()).toMatchObject({ workers: 1, slots: 5, agents: ['free', 'pinned'], queued: 0, running: 1, isDrained: false })
  await release(turnId)
  expect(await ofNew()).toMatchObject({ queued: 1, running: 0, isDrained: false })
  await database.db.execute(`update turns set status = 'completed' where id = '${turnId}'`)
  expect(await ofNew()).toMatchObject({ queued: 0, isDrained: true })
})

test('a tenant sees neither the turns nor the agents that other tenants have with a version', async () => {
  const agents = [{ name: 'theirs', description: '' }]
  await registerWorker(database.db, { tenant: 'others', agents: null }, null, { worker: 'foreign', version: '2', slots: 7, agents })
  await begun('pinned', 'new')
  const seen = await listVersions(database.databaseFor('strangers'), 'strangers', minute)
  expect(seen.find(({ version }) => version === '2')).toMatchObject({
    workers: 1,
    slots: 5,
    agents: ['free', 'pinned'],
    running: 0,
    isDrained: true,
  })
})

async function greet(worker: string, version: string): Promise<void> {
  const agents = [
    { name: 'pinned', description: '', pin: true },
    { name: 'free', description: '' },
  ]
  await registerWorker(database.db, { tenant: everyTenant, agents: null }, null, { worker, version, slots: 5, agents })
}

async function begun(agent: string, worker: string): Promise<TurnId> {
  const { turn } = await database.db.transaction(tx => createTask(tx, 'default', createTaskBody.parse({ agent }), 1))
  const { id } = turn ?? expect.fail('It has no turn')
  await giveShare(database.db, id)
  expect(await claim(id, worker)).toMatchObject({ result: 'claimed' })
  return id
}

/** Under a name of its own: the same claim again would be the same answer. */
function claim(turnId: TurnId, worker: string) {
  return claimTurn(database.db, { turnId, claim: crypto.randomUUID(), worker, leaseMs: minute, pinGraceMs: minute })
}

async function release(turnId: TurnId): Promise<void> {
  const { epoch, claim: claimId } = (await findTurn(database.db, turnId)) ?? expect.fail('It is gone')
  await releaseTurn(database.db, { turnId, epoch: epoch ?? 0, claimId: claimId ?? '' })
  await giveShare(database.db, turnId)
}
