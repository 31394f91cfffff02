/** Nothing that a task contains stays after it was removed: every table is searched for a mark. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const mark = 'mark-of-a-removed-task'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

/** Responses of every call that keeps one under an Idempotency-Key have the mark. */
async function markedTask(): Promise<string> {
  const client = createClient(() => platform.url)
  const name = `${mark} ${crypto.randomUUID()}`
  const body = { agent: 'echo', input: mark, params: { mark }, metadata: { mark }, name }
  const { task } = await client.createTask(body)
  await client.waitForEnd(task.id)
  await client.insist('/v1/tasks', { agent: 'echo', name })
  await client.addTurn(task.id, { input: mark, params: { mark } })
  await client.waitForEnd(task.id)
  await client.insist(`/v1/tasks/${task.id}/cancel`, {})
  return task.id
}

async function tablesWithMark(): Promise<string[]> {
  const { rows } = await platform.pg.query(`select tablename from pg_tables where schemaname = 'public'`)
  const found = await Promise.all(
    rows.map(async ({ tablename }: { tablename: string }) => {
      const { rowCount } = await platform.pg.query(`select from ${tablename} as own where own::text like $1 limit 1`, [`%${mark}%`])
      return rowCount ? tablename : null
    }),
  )
  return found.flatMap(table => table ?? []).sort()
}

test('after DELETE /v1/tasks/:id, no table has anything of the task, and Redis has no key of it', async () => {
  const id = await markedTask()
  expect(await tablesWithMark()).toEqual(expect.arrayContaining(['idempotency_keys', 'tasks', 'turns', 'messages']))
  expect(JSON.stringify(await platform.log(id))).toContain(mark)
  await createClient(() => platform.url).remove(id)
  expect(await tablesWithMark()).toEqual([])
  await until('Redis has no key of it', async () => (await platform.redis.keys(`*${id}*`)).length === 0)
})
