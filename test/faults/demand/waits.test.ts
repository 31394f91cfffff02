/** A turn that waits, on a platform that loses everything but Postgres meanwhile. */
import { fileURLToPath } from 'node:url'
import type { Message } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PrivateRedis, startPrivateRedis } from '../../support/engines/redis/private-redis.ts'
import { faultsOf } from '../../support/judge/task-laws.ts'
import { type Platform, readLog, shortLease, startPlatform } from '../../support/platform/platform.ts'
import { until } from '../../support/until.ts'
import { watch } from '../../support/viewers/viewer.ts'
import { type ArmedTree, createArmedTree } from '../armed-tree.ts'

const agentFile = (name: string) => fileURLToPath(new URL(`../../support/agents/${name}.ts`, import.meta.url))

let server: PrivateRedis
let tree: ArmedTree
let platform: Platform

beforeAll(async () => {
  server = await startPrivateRedis()
  tree = createArmedTree()
  platform = await startPlatform({ workers: 0, tree, env: { ...shortLease, REDIS_URL: server.url } })
})
afterAll(async () => {
  await platform.close()
  await server.close()
  tree.remove()
})

test('a turn that waited three times, across a worker’s death, a wiped Redis, an API restart and a new version of its code, has the rows of one that never waited', async () => {
  const { client } = platform
  const first = await platform.startWorker({ AGENT_FILES: agentFile('waiting-agent') })
  const { task: plain } = await client.createTask({ agent: 'waiter', input: 'go', params: { never: true } })
  await client.waitForEnd(plain.id)
  const { task } = await client.createTask({ agent: 'waiter', input: 'go' })
  const viewer = watch(task.id, { urls: [platform.url] })

  await untilOpen('a', 'waiting')
  await server.client.flushall()
  await answer('a')

  await untilOpen('b', 'running')
  await first.kill('SIGKILL')
  const second = await platform.startWorker({ AGENT_FILES: agentFile('waiting-agent') })
  await client.waitForTask(task.id, ({ turns }) => turns[0]?.attempt === 2)
  await platform.apis[0]?.kill('SIGKILL')
  await platform.startApi({ port: new URL(platform.url).port })
  await answer('b')

  await untilOpen('c', 'waiting')
  await second.kill('SIGTERM')
  await platform.startWorker({ AGENT_FILES: agentFile('waiting-agent-next') })
  await answer('c')

  const { turns } = await client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'completed', waits: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] }])
  expect((await client.messages(task.id)).map(rowOf)).toEqual((await client.messages(plain.id)).map(rowOf))
  expect(await faultsOf({ client, log: id => readLog(server.client, platform.keys, id) }, task.id)).toEqual([])
  await viewer.ended
  expect(viewer.state().turns).toMatchObject([{ status: 'completed' }])

  /** `running` while a worker holds the turn, `waiting` when it has parked. */
  async function untilOpen(name: string, status: string): Promise<void> {
    await client.waitForTask(task.id, ({ turns }) => turns[0]?.waits?.some(wait => wait.name === name && wait.status === 'open') === true)
    const stored = () => platform.pg.query('select status from turns where task = $1', [task.id])
    await until(`the turn is ${status}`, async () => (await stored()).rows[0]?.status === status)
  }

  async function answer(name: string): Promise<void> {
    const { turns } = await client.detail(task.id)
    const wait = turns[0]?.waits?.find(wait => wait.name === name)
    expect((await client.post(`/v1/tasks/${task.id}/waits/${wait?.id}/answer`, { action: 'accept' })).status).toBe(200)
  }
})

test.each(['parked', 'park answering'])('an answer between the commit of a park and its response ("%s") resumes the turn', async point => {
  const { client, pg } = platform
  const api = await platform.startApi({ env: { FAILPOINTS: `${point}=delay:1500` } })
  const worker = await platform.startWorker({ AGENT_FILES: agentFile('waiting-agent'), RIVULET_URL: api.url })
  const { task } = await client.createTask({ agent: 'waiter', input: 'go' })
  await until(
    'the park is committed',
    async () => (await pg.query("select from turns where task = $1 and status = 'waiting'", [task.id])).rowCount,
  )
  for (const name of ['a', 'b', 'c']) {
    const wait = await until(`${name} is asked`, async () =>
      (await client.detail(task.id)).turns[0]?.waits?.find(wait => wait.name === name && wait.status === 'open'),
    )
    await client.post(`/v1/tasks/${task.id}/waits/${wait.id}/answer`, { action: 'accept' })
  }
  const { turns } = await client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(await faultsOf({ client, log: id => readLog(server.client, platform.keys, id) }, task.id)).toEqual([])
  await worker.kill('SIGTERM')
})

/** What a person can read of a message: not when it was said, nor by which attempt. */
function rowOf({ index, turn, author, content, metadata, status, stopReason }: Message) {
  return { index, turn, author, content, metadata, status, stopReason }
}
