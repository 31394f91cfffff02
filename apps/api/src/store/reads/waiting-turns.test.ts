/** Counts of turns that wait: those that may start by now. */
import { createTaskBody } from '@rivulet/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { countWaiting } from './waiting-turns.ts'

test('a turn that an API of the version before puts off, by its time alone, waits for that time', async () => {
  const { db, pool, databaseFor, close } = await openStore()
  onTestFinished(close)
  const accepted = await createTaskAcceptance(databaseFor).accept('default', createTaskBody.parse({ agent: 'echo', input: 'hello' }), null)
  const turnId = accepted?.accepted.turn.id
  expect(await countWaiting(db, 100)).toBe(1)
  await pool.query("update turns set run_at = now() + interval '1 hour' where id = $1", [turnId])
  expect(await countWaiting(db, 100)).toBe(0)
  await pool.query('update turns set run_at = now(), is_delayed = false where id = $1', [turnId])
  expect(await countWaiting(db, 100)).toBe(1)
  const { rows } = await pool.query('select is_delayed from turns where id = $1', [turnId])
  expect(rows).toEqual([{ is_delayed: false }])
})
