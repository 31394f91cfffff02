/**
 * A queue that is deep before Postgres has counted its rows: what concerns one task looks at the turns of that task, not at all that wait. Told
 * by the plans, with no clock.
 */
import { randomUUID } from 'node:crypto'
import { createTaskBody } from '@rivulet/protocol'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase } from '../../../../test/support/database.ts'
import { createTaskAcceptance } from './accept-tasks.ts'
import { claimTurn } from './claim-turn.ts'
import { type DatabaseHandle, openDatabase } from './database.ts'
import { finishTurn } from './finish-turn.ts'
import { dispatchedTurns } from './outbox.ts'

const tenant = 'default'
const request = createTaskBody.parse({ agent: 'echo', input: 'hello' })
const depth = 3_000
let database: DatabaseHandle

beforeAll(async () => {
  const { url } = await createTestDatabase()
  database = openDatabase({ url, onError: () => {} })
  await database.db.execute('alter table turns set (autovacuum_enabled = false)')
  await database.db.execute("insert into agents values ('echo', '')")
  const { accept } = createTaskAcceptance(database.of)
  await Promise.all(Array.from({ length: depth }, () => accept(tenant, request, null)))
  await database.db.execute("update turns set run_at = now() - interval '1 hour'")
  await database.db.execute('delete from outbox')
})
afterAll(() => database.close())

test('accepting, claiming and ending a turn, and looking for lost jobs', async () => {
  const { accept } = createTaskAcceptance(database.of)
  const asked = await statementsOf(async () => {
    const accepted = await accept(tenant, request, null)
    const turn = accepted?.accepted.turn.id ?? ''
    const answer = await claimTurn(database.db, { turn, claim: randomUUID(), worker: 'w', leaseMs: 60_000 })
    if (answer.answer !== 'claimed') throw new Error(`It was ${answer.answer}`)
    const { epoch } = answer.claimed.turn
    const outcome = { status: 'completed', stopReason: 'stop' } as const
    const ended = await finishTurn(database.db, { turn, tenant, epoch, canceling: false }, { outcome, messages: [] })
    expect(ended.answer).toBe('committed')
    expect(await dispatchedTurns(database.db, { dueForMs: 1_000, limit: 10 })).toHaveLength(10)
  })
  const plans = await Promise.all(asked.map(planOf))
  expect(plans.length).toBeGreaterThanOrEqual(4)
  for (const [i, plan] of plans.entries()) expect([asked[i]?.text, ...scansOfAllTurns(plan)]).toEqual([asked[i]?.text])
})

type Statement = { text: string; values: unknown[] }

/** What is asked about turns meanwhile. */
async function statementsOf(work: () => Promise<void>): Promise<Statement[]> {
  const query = vi.spyOn(Client.prototype, 'query')
  try {
    await work()
    const asked = query.mock.calls as unknown as [Partial<Statement> | string, unknown[]?][]
    const statements = asked.map(([config, values = []]) =>
      typeof config === 'string' ? { text: config, values } : { text: '', values, ...config },
    )
    return statements.filter(({ text }) => /\bturns\b/.test(text))
  } finally {
    query.mockRestore()
  }
}

type Plan = { 'Node Type': string; 'Relation Name'?: string; 'Index Name'?: string; Plans?: Plan[] }

async function planOf({ text, values }: Statement): Promise<Plan> {
  const { rows } = await database.pool.query(`explain (format json) ${text}`, values)
  return rows[0]['QUERY PLAN'][0].Plan
}

/** What goes through the turns of every task. The queue itself, in the order of its age, may be gone through. */
function scansOfAllTurns({ Plans = [], ...node }: Plan): string[] {
  const isScan = (node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'turns') || node['Index Name'] === 'turns_deadline'
  return [...(isScan ? [`${node['Node Type']} ${node['Index Name'] ?? ''}`] : []), ...Plans.flatMap(scansOfAllTurns)]
}
