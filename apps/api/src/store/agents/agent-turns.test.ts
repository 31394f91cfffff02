/** The list of an agent's turns: pages in the order of their status, and a plan that reads no more turns than a page has. */
import { createTaskBody } from '@rivulet/contract/tasks'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { listTurns, type TurnPlace } from './agent-turns.ts'

const tenant = 'default'
const count = 3_000
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
  const { accept } = createTaskAcceptance(database.databaseFor)
  const request = createTaskBody.parse({ agent: 'echo', input: 'hello' })
  await Promise.all(Array.from({ length: count }, () => accept(tenant, request, null)))
  await accept(tenant, { ...request, agent: 'other' }, null)
  await database.db.execute("update turns set started_at = queued_at + (random() * 100)::int * interval '1 ms' where random() < 0.5")
  await database.db.execute('analyze turns, tasks')
})
afterAll(() => database.close())

test('pages have each turn of the agent once, the latest status first, and every page the number of all of them', async () => {
  const listed: TurnPlace[] = []
  for (let after: TurnPlace | null = null; ; after = listed.at(-1) ?? null) {
    const { places, total } = await list(after, 700)
    expect(total).toBe(count)
    if (places.length === 0) break
    listed.push(...places)
  }
  expect(new Set(listed.map(({ id }) => id)).size).toBe(count)
  const isSorted = listed.every(({ at, id }, place) => {
    const before = listed[place - 1]
    return !before || before.at > at || (before.at.getTime() === at.getTime() && before.id > id)
  })
  expect(isSorted).toBe(true)
})

test.each([false, true])('a page reads the index and sorts nothing (after a first page: %s)', async isLater => {
  const first = await list(null, 50)
  const query = vi.spyOn(Client.prototype, 'query')
  await list(isLater ? (first.places.at(-1) ?? null) : null, 50)
  const [asked] = query.mock.calls.flatMap(([config, values]) => {
    const { text, values: own = values } = config as unknown as { text: string; values?: unknown[] }
    return /with page/.test(text) ? [{ text, values: own as unknown[] }] : []
  })
  query.mockRestore()
  const { rows } = await database.pool.query(`explain (format json) ${asked?.text}`, asked?.values)
  const page = nodesOf(rows[0]['QUERY PLAN'][0].Plan).find(node => node['Node Type'] === 'Limit')
  const nodes = page ? nodesOf(page) : []
  expect(nodes.map(node => node['Index Name'])).toContain('turns_status_at')
  expect(nodes.map(node => node['Node Type'])).not.toContain('Sort')
})

type Plan = { 'Node Type': string; 'Index Name'?: string; Plans?: Plan[] }

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

function list(after: TurnPlace | null, limit: number) {
  return listTurns(database.databaseFor(tenant), tenant, { agent: 'echo' }, { after, limit })
}
