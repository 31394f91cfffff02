/** A tree of fifty tasks: it outlives every process of the platform, Redis and Postgres included, and its cancel ends all of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasNativeRedis, type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, readLog, startPlatform } from '../support/platform/platform.ts'
import type { Client } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'

const agent = { AGENT_FILES: fileURLToPath(new URL('../support/agents/tree-agent.ts', import.meta.url)) }
const widths = [7, 6]
const size = 50

let redis: PrivateRedis
let postgres: FaultyProxy
let platform: Platform
let client: Client

beforeAll(async () => {
  redis = await startPrivateRedis()
  platform = await startPlatform({ apis: 0, workers: 0, env: { MAX_CHILD_ALIVE: '60', LEASE_MS: '6000', REDIS_URL: redis.url } })
  postgres = await startProxy(platform.databaseUrl)
  const apis = await Promise.all([startApi(), startApi()])
  client = platform.clientOf(apis[0])
  await Promise.all(apis.map(({ url }) => platform.startWorker({ ...agent, RIVULET_URL: url })))
})
afterAll(async () => {
  await platform.close()
  await Promise.all([postgres.close(), redis.close()])
})

function startApi(port?: string) {
  return platform.startApi({ ...(port && { port }), env: { DATABASE_URL: postgres.url } })
}

const faults = (task: string) => faultsOf({ client, log: id => readLog(redis.client, platform.keys, id) }, task)

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
  const { task } = await client.createTask({ agent: 'tree', params: { widths, restMs: 1_500 } })
  for (const [i, worker] of [...platform.workers].entries()) {
    await grown(task.id, 8 + i * 10)
    await worker.kill('SIGKILL')
    await platform.startWorker({ ...agent, RIVULET_URL: platform.apis[i]?.url ?? '' })
  }
  if (hasNativeRedis) {
    await redis.kill()
    await redis.restart()
  }
  // As a Postgres that crashes and starts again: every connection breaks, and what it committed is there.
  postgres.down()
  await sleep(2_000)
  postgres.up()
  for (const api of [...platform.apis]) {
    await api.kill('SIGKILL')
    await startApi(new URL(api.url).port)
  }
  await client.waitForEnd(task.id, { timeoutMs: 200_000 })
  const [message] = await client.messages(task.id)
  expect(message?.content).toMatchObject({ text: String(size) })
  // A log that was reopened after the death of Redis proves nothing of what was before: rows do.
  const tree = [task.id, ...(await grown(task.id, size))]
  const { rows } = await platform.pg.query(
    `select turns.status, (select count(*)::int from feed where feed.task = turns.task and type = 'turn.finished') as ends,
       (select count(*)::int from messages where messages.task = turns.task and author = 'agent') as messages
     from turns where task = any($1)`,
    [tree],
  )
  expect(rows).toEqual(tree.map(() => ({ status: 'completed', ends: 1, messages: 1 })))
})

test('ends as a whole when its root is canceled, each task announced once', { timeout: 300_000 }, async () => {
  const { task } = await client.createTask({ agent: 'tree', params: { widths, restMs: 600_000 } })
  const tree = [task.id, ...(await grown(task.id, size))]
  await client.cancel(task.id)
  const { rows } = await platform.pg.query('select from turns where task = any($1) and status not in ($2) and not canceling', [
    tree,
    'canceled',
  ])
  expect(rows).toEqual([])
  for (const id of tree) {
    expect((await client.waitForEnd(id)).task.status).toBe('canceled')
    expect(await faults(id)).toEqual([])
  }
})
