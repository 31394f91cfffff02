/** Many tasks over several worker processes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { modes, repeat, say, scripted, start } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { untilNothingIsPending } from '../support/platform/until-nothing-is-pending.ts'

let platform: Platform

beforeAll(async () => {
  // The lease is long enough for a machine that is busy with other tests.
  platform = await startPlatform({ workers: 4, env: { LEASE_MS: '6000', WORKER_CONCURRENCY: '3' } })
})
afterAll(() => platform.close())

test('two hundred tasks through four workers all end with the right rows', async () => {
  const tasks = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const mode = modes[i % modes.length]
      const input = `question ${i}`
      const steps = [start(0, { type: 'text', text: 'a', format: 'markdown' }), repeat(5, say(0, `${i} `)), say(1, `second ${i}`)]
      const body = i % 4 === 3 ? { agent: 'echo', input } : scripted(steps, { input }, mode === 'manual' ? 'generator' : mode)
      return { i, id: (await platform.client.createTask(body)).task.id }
    }),
  )
  await untilNothingIsPending(platform)

  const { rows } = await platform.pg.query('select task, array_agg(content order by index) as contents from messages group by task')
  const contentsOf = new Map(rows.map(({ task, contents }) => [task, contents]))
  for (const { i, id } of tasks) {
    const input = { type: 'text', text: `question ${i}`, format: 'plain' }
    const said =
      i % 4 === 3
        ? [input]
        : [
            { type: 'text', text: `a${`${i} `.repeat(5)}`, format: 'markdown' },
            { type: 'text', text: `second ${i}`, format: 'plain' },
          ]
    expect(contentsOf.get(id)).toEqual([input, ...said])
  }
  const { rows: ends } = await platform.pg.query('select status, count(*)::int from turns group by status')
  expect(ends).toEqual([{ status: 'completed', count: 200 }])
  const workers = await platform.pg.query('select count(distinct worker)::int as count from turns')
  expect(workers.rows[0].count).toBe(4)
  for (const { id } of tasks) expect(await faultsOf(platform, id)).toEqual([])
})
