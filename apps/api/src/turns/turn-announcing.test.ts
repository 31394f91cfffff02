/** Ends that are said late, on a real Postgres and a real Redis. */
import { createTaskBody, createTurnBody } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../../test/support/engines/database.ts'
import { openLogs } from '../../../../test/support/platform/logs.ts'
import { claimWithShare } from '../../test/give-share.ts'
import { openDatabase } from '../store/connection/database.ts'
import { turns } from '../store/schema.ts'
import { createTaskAcceptance } from '../store/tasks/accept-tasks.ts'
import { createTurn } from '../store/tasks/create-turn.ts'
import { finishTurn } from '../store/turns/finish-turn.ts'
import { createTurnAnnouncing } from './turn-announcing.ts'

const tenant = 'default'

test('an end that is owed comes after the turns behind it, also one that is claimed and whose start is not announced yet', async () => {
  const { url } = await createTestDatabase()
  const database = openDatabase({ url, onError: () => {} })
  onTestFinished(() => database.close())
  const { db } = database
  await db.execute("insert into agents values ('echo', '')")
  const { announcer, reader } = openLogs()
  const { announceOwed, announceStart } = createTurnAnnouncing({ db, announcer, reader, logger: pino({ level: 'silent' }) })
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, createTaskBody.parse({ agent: 'echo' }), null)
  const { task, turn } = accepted?.accepted ?? expect.fail('It was not accepted')

  // No log was opened for it yet: the start opens one, under an epoch of its own.
  const first = (await announceStart(await claim(turn.id))) ?? expect.fail('It was not started')
  expect(first.turn.epoch).toBe(4)
  const next = await db.transaction(tx => createTurn(tx, tenant, task.id, createTurnBody.parse({ input: 'next' }), 10))
  const holding = { turnId: turn.id, tenant, epoch: first.turn.epoch, canceling: false }
  await finishTurn(db, holding, { outcome: { status: 'completed', stopReason: 'stop' }, messages: [] })
  const second = await claim(next.turn.id)
  const [owed] = await db.select().from(turns).where(eq(turns.id, turn.id))
  await announceOwed(owed ?? expect.fail('It is gone'))
  await announceStart(second)

  const said = (await reader.read(task.id, '0-0', 100)).map(({ json }) => JSON.parse(json))
  expect(said.map(event => `${event.type} ${event.turn}`)).toEqual([
    ...['turn.queued 1', 'turn.started 1'],
    ...['turn.queued 2', 'turn.finished 1', 'turn.started 2'],
  ])

  async function claim(id: string) {
    const claim = await claimWithShare(db, { turnId: id, claim: id, worker: 'w', leaseMs: 60_000 })
    return claim.result === 'claimed' ? claim.claimed : expect.fail(`It was not claimed: ${claim.result}`)
  }
})
