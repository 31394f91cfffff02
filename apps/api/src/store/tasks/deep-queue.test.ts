/**
 * A queue that is deep before Postgres has counted its rows: what concerns one task looks at the turns of that task, not at all that wait. Told
 * by the plans, with no clock.
 */
import { randomUUID } from 'node:crypto'
import { createTaskBody } from '@rivulet/contract/tasks'
import { Client, escapeLiteral, type PoolClient } from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { findByKey } from '../connection/tenant-pool.ts'
import { createStoredTaskReader } from '../reads/stored-task.ts'
import { countWaiting } from '../reads/waiting-turns.ts'
import { claimTurn, createQueuedClaims } from '../turns/claim-turn.ts'
import { finishTurn, waysToEnd } from '../turns/finish-turn.ts'
import { countDeath, extendLeases, isHeldUnder } from '../turns/leases.ts'
import { cancelingTurns, overdueTurns } from '../turns/overdue.ts'
import { createTaskAcceptance } from './accept/accept-tasks.ts'
import { heldTurns, holdTaskOf } from './held-task.ts'
import { dispatchedTurns } from './outbox.ts'

const tenant = 'default'
const request = createTaskBody.parse({ agent: 'echo', input: 'hello' })
const depth = 3_000
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
  await database.db.execute('alter table turns set (autovacuum_enabled = false)')
})
afterAll(() => database.close())

/** While there are no turns: so are the plans made that a connection keeps for the statements that have a name. */
test('a plan that was made when there were no turns does not go through all of them', async () => {
  const asked = (await statementsOf(live)).filter(({ name }) => name !== undefined)
  const names = 'dispatch_accepted claim_queued finish_turns hold_free_tasks hold_usual_tasks stored_tasks extend_leases take_back'
  expect(asked.map(({ name }) => name)).toEqual(expect.arrayContaining(names.split(' ')))
  await check(asked, keptPlanOf)
})

test('accepting, claiming and ending a turn, counting those that wait, and looking for lost jobs, do not go through all turns that wait', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  await Promise.all(Array.from({ length: depth }, () => accept(tenant, request, null)))
  await database.db.execute("update turns set run_at = now() - interval '1 hour'")
  await database.db.execute('delete from outbox')
  const asked = await statementsOf(async () => {
    await live()
    expect(await dispatchedTurns(database.db, { dueForMs: 1_000, limit: 10 })).toHaveLength(10)
    expect(await countWaiting(database.db, 10)).toBe(10)
  })
  await check(asked, planOf)
})

test('a turn without a delay whose job is lost is found, also after the clock of Postgres was set back', async () => {
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, request, null)
  const turnId = accepted?.accepted.turn.id ?? ''
  await database.db.execute('delete from outbox')
  await database.db.execute(`update turns set status = 'canceled' where status = 'queued' and id <> '${turnId}'`)
  await database.db.execute("update turns set run_at = now() + interval '1 hour'")
  const find = async () => (await dispatchedTurns(database.db, { dueForMs: 1_000, limit: 10 })).map(found => found.turnId)
  expect(await find()).toEqual([])
  await database.db.execute('update turns set is_delayed = false')
  expect(await find()).toEqual([turnId])
})

test('looking for turns to end reads neither those that no worker has started nor those that wait, however late they are', async () => {
  const { accept } = createTaskAcceptance(database.databaseFor)
  await Promise.all(Array.from({ length: 100 }, () => accept(tenant, request, null)))
  await database.db.execute(
    "update turns set deadline = now() - interval '1 hour', status = 'waiting', started_at = now() where status <> 'queued'",
  )
  await database.db.execute("update turns set deadline = now() - interval '1 hour', started_at = null where status = 'queued'")
  await database.db.execute('analyze turns')
  const asked = await statementsOf(async () => {
    expect(await overdueTurns(database.db, 10)).toEqual([])
    expect(await cancelingTurns(database.db, 10)).toEqual([])
  })
  expect(asked).toHaveLength(2)
  for (const { text, values } of asked) {
    const { rows } = await database.pool.query(`explain (analyze, format json) ${text}`, values)
    expect(rowsRead(rows[0]['QUERY PLAN'][0].Plan)).toBe(0)
  }
})

/** Two turns from their beginning to their end, claimed and ended together, with a viewer. */
async function live(): Promise<void> {
  const { db, leases, databaseFor } = database
  const { accept } = createTaskAcceptance(databaseFor)
  const [claimQueued, ways] = [createQueuedClaims(db), waysToEnd(db)]
  const readTask = createStoredTaskReader(databaseFor, 1_000)
  await Promise.all([1, 2].map(run))

  async function run(): Promise<void> {
    const accepted = await accept(tenant, request, null)
    const turnId = accepted?.accepted.turn.id ?? ''
    const claimId = randomUUID()
    const claim = await claimTurn(db, { turnId, claim: claimId, worker: 'w', leaseMs: 60_000 }, claimQueued)
    if (claim.result !== 'claimed') throw new Error(`It was ${claim.result}`)
    const { epoch, task } = claim.claimed.turn
    await readTask(tenant, task)
    const holding = { turnId, epoch: epoch ?? 0, claimId }
    expect(await extendLeases(leases, 'w', [holding], 60_000)).toEqual({ lost: [], takenBack: [] })
    await countDeath(db, claim.claimed.turn, 'silent', isHeldUnder(holding), {
      status: 'lost',
      error: { code: 'worker_lost', message: 'Late' },
      messages: [],
    })
    expect(await extendLeases(leases, 'w', [holding], 60_000)).toMatchObject({ lost: [], takenBack: [{ id: turnId }] })
    const outcome = { status: 'completed', stopReason: 'stop' } as const
    const ended = await finishTurn(db, { turnId, tenant, epoch, canceling: false }, { outcome, messages: [] }, ways)
    expect(ended.result).toBe('committed')
  }
}

async function check(asked: readonly Statement[], plan: (statement: Statement) => Promise<Plan>): Promise<void> {
  expect(asked.length).toBeGreaterThanOrEqual(4)
  for (const statement of asked) expect([statement.text, ...scansOfAllTurns(await plan(statement))]).toEqual([statement.text])
}

type Statement = { name?: string; text: string; values: unknown[] }

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

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  'Actual Rows'?: number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

async function planOf(asked: Statement): Promise<Plan> {
  const { text, values } = asked
  return inTransaction(asked, async client => {
    const { rows } = await client.query(`explain (format json) ${text}`, values)
    return rows[0]['QUERY PLAN'][0].Plan
  })
}

/** Without a look at the values, as a connection plans what it is asked again and again. */
async function keptPlanOf(asked: Statement): Promise<Plan> {
  const { text, values } = asked
  return inTransaction(asked, async client => {
    await client.query('set plan_cache_mode = force_generic_plan')
    await client.query(`prepare asked as ${text}`)
    const { rows } = await client.query(`explain (format json) execute asked (${values.map(literalOf).join(', ')})`)
    return rows[0]['QUERY PLAN'][0].Plan
  })
}

/** A statement behind others in its transaction is planned behind the settings of the first. */
async function inTransaction({ name = '', text }: Statement, plan: (client: PoolClient) => Promise<Plan>): Promise<Plan> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    if (text.includes(heldTurns)) await client.query(holdTaskOf(randomUUID()))
    if (name === 'extend_leases') await client.query(findByKey)
    return await plan(client)
  } finally {
    client.release(true)
  }
}

function literalOf(value: unknown): string {
  if (value === null) return 'null'
  return escapeLiteral(Array.isArray(value) ? `{${value.join(',')}}` : String(value))
}

function rowsRead({ Plans = [], ...node }: Plan): number {
  return Plans.reduce((sum, plan) => sum + rowsRead(plan), (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0))
}

/** What goes through the turns of every task: the table, or a whole index. */
function scansOfAllTurns({ Plans = [], ...node }: Plan): string[] {
  const { 'Node Type': type, 'Relation Name': relation, 'Index Name': index = '', 'Index Cond': condition } = node
  const isScan = (type === 'Seq Scan' && relation === 'turns') || (index.startsWith('turns_') && condition === undefined)
  return [...(isScan ? [`${type} ${index}`] : []), ...Plans.flatMap(scansOfAllTurns)]
}
