import { createTaskBody } from '@rivulet/contract/tasks'
import { sql } from 'drizzle-orm'
import { Client, type QueryConfig } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { type DatabaseHandle, openDatabase } from '../connection/database.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { pickText } from './pick-turns.ts'

const values = ['echo', 64, true, 15_000]

let database: DatabaseHandle
let url: string

beforeAll(async () => {
  url = (await createTestDatabase()).url
  database = openDatabase({ url, onError: () => {} })
  await database.db.execute(sql`insert into agents values ('echo', '')`)
})
afterAll(() => database.close())

test('100,000 waiting turns of 1,000 keys are not read for a pick', { timeout: 240_000 }, async () => {
  await flood(100_000, 1_000)
  await database.db.execute(sql`analyze`)
  const { rows } = await database.db.$client.query({ text: `explain (analyze, format json) ${pickText}`, values })
  const [{ Plan }] = rows[0]['QUERY PLAN']
  const [pickMs, yardstickMs] = [await medianMs({ name: 'pick_turns', text: pickText, values }), await medianMs(yardstick)]
  console.log(
    `A pick among 100,000 waiting turns of 1,000 keys takes ${pickMs} ms, where Postgres adds 100,000 numbers in ${yardstickMs} ms`,
  )
  const scans = nodesOf(Plan).filter(node => node['Relation Name'] === 'outbox' || node['Relation Name'] === 'turns')
  expect(scans.length).toBeGreaterThan(0)
  for (const node of scans) expect((node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']).toBeLessThan(5_000)
})

/** Tells the speed of the machine at that time: where Postgres gets half a core, both figures double. */
const yardstick = { name: 'yardstick', text: 'select sum(i) from generate_series(1, 100000) as i' }

/** Of statements that are taken back, on one connection of the pool, because Postgres plans the first five of a connection anew. */
async function medianMs(statement: QueryConfig): Promise<number> {
  const client = await database.db.$client.connect()
  const times: number[] = []
  for (let count = 0; count < 25; count += 1) {
    await client.query('begin')
    const began = performance.now()
    await client.query(statement)
    times.push(performance.now() - began)
    await client.query('rollback')
  }
  client.release()
  return Math.round(times.slice(6).toSorted((a, b) => a - b)[9] ?? Number.NaN)
}

type PlanNode = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: PlanNode[]
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}

/** Faster than by the API: only the rows, without triggers. */
async function flood(count: number, keys: number): Promise<void> {
  const request = createTaskBody.parse({ agent: 'echo' })
  const { task: template } = await database.db.transaction(tx => createTask(tx, 'default', request, 10))
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('set session_replication_role = replica')
  await client.query(`
    with copies as (
      insert into tasks select (json_populate_record(tasks, json_build_object('id', gen_random_uuid(), 'concurrency_key', 'key ' || i % ${keys}))).*
      from tasks, generate_series(1, ${count}) as i where id = '${template.id}' returning id, concurrency_key
    ), queued as (
      insert into turns select (json_populate_record(turns, json_build_object('id', copies.id, 'task', copies.id))).*
      from turns, copies where turns.task = '${template.id}'
    )
    insert into outbox (turn, agent, share, waits) select id, 'echo', concurrency_key, true from copies`)
  await client.end()
}
