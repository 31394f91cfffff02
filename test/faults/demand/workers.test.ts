/** Workers that run out of memory or stand still by themselves, and a queue that is faster than the commit. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withPlatform } from '../../support/platform.ts'
import { type Client, createClient } from '../../support/platform-client.ts'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'

const greedy = `
import { defineAgent } from '@rivulet/worker'
export const hoarder = defineAgent('hoarder', async turn => {
  await turn.send('before')
  if (turn.attempt > 1) return
  const kept = []
  for (;;) kept.push(new Array(100_000).fill(Math.random()))
})
export const spinner = defineAgent('spinner', async turn => {
  await turn.send('before')
  const end = Date.now() + (turn.attempt > 1 ? 0 : 10_000)
  while (Date.now() < end);
  await turn.send('after')
})
`

let bench: Bench
let client: Client

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 0 })
  client = createClient(() => bench.urls[0] ?? '')
})
afterAll(() => bench.close())

test('a worker that runs out of memory is a worker that died, and one that stands still is one that was frozen', {
  timeout: 180_000,
}, async () => {
  const file = join(bench.tree.root, 'greedy.ts')
  writeFileSync(file, greedy)
  const env = { AGENT_FILES: file, NODE_OPTIONS: '--max-old-space-size=200' }
  const { startWorker } = bench.platform
  const greedyWorker = () => startWorker({ RIVULET_URL: bench.urls[0] ?? '', ...env })
  const first = await greedyWorker()
  const spinning = await client.createTask({ agent: 'spinner' })
  await client.waitForTask(spinning.task.id, ({ turns: [turn] }) => turn?.status === 'running')
  await greedyWorker()
  expect((await client.waitForEnd(spinning.task.id, { timeoutMs: 90_000 })).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  expect(await client.messages(spinning.task.id)).toMatchObject([{ content: { text: 'before' } }, { content: { text: 'after' } }])
  const hoarding = await client.createTask({ agent: 'hoarder' })
  expect((await client.waitForEnd(hoarding.task.id, { timeoutMs: 90_000 })).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  expect(first.pid).toBeGreaterThan(0)
  await Promise.all(bench.workers().map(worker => worker.kill()))
})

test('no worker ever gets a job whose turn it cannot find', { timeout: 900_000 }, () =>
  // Nothing here is about leases.
  withPlatform({ workers: 2, env: { LEASE_MS: '60000' } }, async platform => {
    const count = 2_000
    for (let sent = 0; sent < count; sent += 20)
      await Promise.all(Array.from({ length: 20 }, () => platform.client.createTask({ agent: 'echo', input: 'x' })))
    const pending = "select from turns where status in ('queued', 'running') limit 1"
    await until('every turn has ended', async () => (await platform.pg.query(pending)).rowCount === 0, { timeoutMs: 120_000 })
    const { rows } = await platform.pg.query(
      'select status, count(*)::int, max(attempt) as attempts, max(dispatch) as dispatches from turns group by status',
    )
    // A job that came too early would have been dropped, and sent again by the reconciler.
    expect(rows).toEqual([{ status: 'completed', count, attempts: 1, dispatches: 1 }])
  }),
)
