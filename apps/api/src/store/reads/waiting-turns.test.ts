/** Counts of turns that wait, beside many turns that have a delay and more that have ended. */
import { createTaskBody } from '@rivulet/contract/tasks'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { countWaiting, exceedsTurns } from './waiting-turns.ts'

const tenant = 'default'
const delayed = 10_000
const pieceSize = 2_500
let database: DatabaseHandle
let turnId: string

beforeAll(async () => {
  database = await openStore()
  const { accept } = createTaskAcceptance(database.databaseFor)
  const request = createTaskBody.parse({ agent: 'echo', input: 'hello' })
  await accept(tenant, { ...request, delayMs: 3_600_000 }, null)
  await database.db.execute('alter table turns disable trigger user')
  await copyTurns(delayed - 1, {})
  await copyTurns(2 * delayed, { status: 'completed' })
  await database.db.execute('alter table turns enable trigger user')
  turnId = (await accept(tenant, request, null))?.accepted.turn.id ?? ''
  await database.db.execute('analyze turns, tasks')
})
afterAll(() => database.close())

/** More turns of the first task, some at a time, because a statement may take 5 s. */
async function copyTurns(count: number, change: object): Promise<void> {
  for (let left = count; left > 0; left -= pieceSize)
    await database.pool.query(
      `insert into turns select copy.* from turns first, (select max(number) as last from turns) numbers, generate_series(1, $2::int) n,
        jsonb_populate_record(first, $1::jsonb || jsonb_build_object('id', gen_random_uuid(), 'number', last + n)) copy
      where first.number = 1 and first.is_delayed`,
      [JSON.stringify(change), Math.min(left, pieceSize)],
    )
}

test('whether a tenant has more turns than it may is read from the index of unfinished turns', async () => {
  const query = vi.spyOn(Client.prototype, 'query')
  await database.db.transaction(tx => exceedsTurns(tx, tenant, delayed))
  const [asked] = query.mock.calls.flatMap(([config, values]) => {
    const { text, values: own = values } = config as unknown as { text?: string; values?: unknown[] }
    return text && /turns/.test(text) ? [{ text, values: own as unknown[] }] : []
  })
  query.mockRestore()
  const { rows } = await database.pool.query(`explain (format json) ${asked?.text}`, asked?.values)
  const nodes = nodesOf(rows[0]['QUERY PLAN'][0].Plan)
  expect(nodes).toContainEqual(expect.objectContaining({ 'Index Name': 'turns_unfinished', 'Index Cond': expect.any(String) }))
  expect(nodes).not.toContainEqual(expect.objectContaining({ 'Node Type': 'Seq Scan', 'Relation Name': 'turns' }))
})

test('a turn that an API of the version before puts off, by its time alone, waits for that time', async () => {
  expect(await countWaiting(database.db, 100)).toBe(1)
  await database.pool.query("update turns set run_at = now() + interval '1 hour' where id = $1", [turnId])
  expect(await countWaiting(database.db, 100)).toBe(0)
  await database.pool.query('update turns set run_at = now(), is_delayed = false where id = $1', [turnId])
  expect(await countWaiting(database.db, 100)).toBe(1)
  const { rows } = await database.pool.query('select is_delayed from turns where id = $1', [turnId])
  expect(rows).toEqual([{ is_delayed: false }])
})

type Plan = { 'Node Type': string; Plans?: Plan[] }

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}
