/** A tree of fifty tasks: it outlives every process of the platform, and its cancel ends all of it. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const agent = { AGENT_FILES: fileURLToPath(new URL('../support/agents/tree-agent.ts', import.meta.url)) }
const widths = [7, 6]
const size = 50

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0, env: { MAX_CHILD_ALIVE: '60', LEASE_MS: '6000' } })
  await Promise.all(platform.urls.map(url => platform.startWorker({ ...agent, RIVULET_URL: url })))
})
afterAll(() => platform.close())

const grown = async (task: string, count: number) =>
  until(
    `the tree of ${task} has ${count} tasks`,
    async () => {
      const { rows } = await platform.pg.query<{ child: string }>('select child from children where root = $1', [task])
      return rows.length >= count - 1 && rows.map(({ child }) => child)
    },
    { timeoutMs: 90_000 },
  )

test('survives the death of every process, once each', { timeout: 300_000 }, async () => {
  const { task } = await platform.client.createTask({ agent: 'tree', params: { widths, restMs: 1_500 } })
  for (const [i, worker] of [...platform.workers].entries()) {
    await grown(task.id, 8 + i * 10)
    await worker.kill('SIGKILL')
    await platform.startWorker(agent)
  }
  for (const api of [...platform.apis]) {
    await api.kill('SIGKILL')
    await platform.startApi({ port: new URL(api.url).port })
  }
  await platform.client.waitForEnd(task.id, { timeoutMs: 200_000 })
  const [message] = await platform.client.messages(task.id)
  expect(message?.content).toMatchObject({ text: String(size) })
  for (const id of [task.id, ...(await grown(task.id, size))]) expect(await faultsOf(platform, id)).toEqual([])
})

test('ends as a whole when its root is canceled, each task announced once', { timeout: 300_000 }, async () => {
  const { task } = await platform.client.createTask({ agent: 'tree', params: { widths, restMs: 600_000 } })
  const tree = [task.id, ...(await grown(task.id, size))]
  await platform.client.cancel(task.id)
  const { rows } = await platform.pg.query('select from turns where task = any($1) and status not in ($2) and not canceling', [
    tree,
    'canceled',
  ])
  expect(rows).toEqual([])
  for (const id of tree) {
    expect((await platform.client.waitForEnd(id)).task.status).toBe('canceled')
    expect(await faultsOf(platform, id)).toEqual([])
  }
})
