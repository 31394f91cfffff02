/** From the commit to a worker, whatever happens in between: the queue is a hint, and nothing that was accepted is lost. */
import { createTurnQueue } from '@rivulet/broker'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { startProxy } from '../support/viewers/proxy.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
  const agents = ['echo', 'scripted'].map(name => ({ name, description: '' }))
  await platform.client.post('/internal/hello', { worker: 'not yet', agents })
})
afterAll(() => platform.close())

// The first test: here no worker is there yet.
test('turns wait for a worker, and those of higher priority are taken first', async () => {
  const priorities = [0, 10, 0, 100, 50, 10]
  const tasks: string[] = []
  for (const priority of priorities) tasks.push((await platform.client.createTask(scripted([], { priority }))).task.id)
  await until('all are in the queue', async () => (await platform.pg.query('select from outbox')).rowCount === 0)
  const worker = await platform.startWorker({ WORKER_CONCURRENCY: '1' })
  const starts: { priority: number | undefined; at: number }[] = []
  for (const [i, id] of tasks.entries()) {
    const { turns } = await platform.client.waitForEnd(id)
    starts.push({ priority: priorities[i], at: Date.parse(turns[0]?.startedAt ?? '') })
  }
  expect(starts.sort((a, b) => a.at - b.at).map(({ priority }) => priority)).toEqual([100, 50, 10, 10, 0, 0])
  await worker.kill()
  await platform.startWorker()
})

test('an API that is killed between commit and enqueue loses nothing', async () => {
  const proxy = await startProxy(inject('redisUrl'))
  onTestFinished(() => proxy.close())
  const api = await platform.startApi({ env: { REDIS_URL: proxy.url } })
  proxy.down()
  const client = platform.clientOf(api)
  const accepted = await Promise.all(Array.from({ length: 5 }, (_, i) => client.createTask({ agent: 'echo', input: `word ${i}` })))
  // The other API has looked at the outbox by now, or will: for it too these are unfinished work.
  await api.kill()
  for (const [i, { task }] of accepted.entries()) {
    await platform.client.waitForEnd(task.id)
    expect((await platform.client.messages(task.id)).at(-1)).toMatchObject({ author: 'agent', content: { text: `word ${i}` } })
    expect(await faultsOf(platform, task.id)).toEqual([])
  }
})

test('turns that could not be enqueued are enqueued by the next API', async () => {
  const proxy = await startProxy(inject('redisUrl'))
  onTestFinished(() => proxy.close())
  // Alone, so that no other API does it.
  const [first] = platform.apis
  await first?.kill('SIGTERM')
  const cutOff = await platform.startApi({ env: { REDIS_URL: proxy.url } })
  proxy.down()
  const { task } = await platform.clientOf(cutOff).createTask({ agent: 'echo', input: 'still here' })
  await cutOff.kill()
  expect((await platform.pg.query('select from outbox')).rowCount).toBe(1)
  await platform.startApi({ port: new URL(platform.url).port })
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('jobs that the queue has lost are sent again', async () => {
  const worker = lastWorker()
  worker.freeze()
  const tasks = await Promise.all(Array.from({ length: 10 }, (_, i) => platform.client.createTask({ agent: 'echo', input: `${i}` })))
  await until('all are in the queue', async () => (await platform.pg.query('select from outbox')).rowCount === 0)
  const keys = await platform.redis.keys(`${platform.keys.queuePrefix}*`)
  expect(keys.length).toBeGreaterThan(0)
  await platform.redis.del(...keys)
  worker.wake()
  for (const { task } of tasks) expect((await platform.client.waitForEnd(task.id)).task.status).toBe('completed')
})

test('a job that comes twice, or too early, runs nothing twice', async () => {
  const { task, turn } = await platform.client.createTask(scripted([say(0, 'once'), rest(500)], { input: 'one' }))
  const behind = await platform.client.addTurn(task.id, { input: 'two', params: { steps: [say(0, 'after')] } })
  const queue = createTurnQueue({ redis: platform.redis, keys: platform.keys, onError: () => {} })
  onTestFinished(() => queue.close())
  const jobs = [turn.id, behind.id].flatMap(id =>
    [90, 91, 92].map(dispatch => ({ turnId: id, agent: 'scripted', dispatch, delayMs: 0, priority: 100 })),
  )
  await queue.enqueue(jobs)
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([
    { status: 'completed', attempt: 1 },
    { status: 'completed', attempt: 1 },
  ])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('a worker without room leaves the turns of its other agents to workers with room', async () => {
  let finish = () => {}
  const agents = [
    defineAgent('slow', () => new Promise<void>(resolve => (finish = resolve))),
    defineAgent('quick', turn => turn.send('done').then(() => {})),
  ]
  const workers = [await startOwnWorker(platform, agents, { concurrency: 1 }), await startOwnWorker(platform, agents, { concurrency: 1 })]
  const slow = await platform.client.createTask({ agent: 'slow' })
  await platform.client.waitForTask(slow.task.id, ({ task }) => task.status === 'running')
  for (let i = 0; i < 10; i += 1) {
    const { turns } = await platform.client.finishedTask({ agent: 'quick', input: `${i}` })
    expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  }
  const { rows } = await platform.pg.query('select distinct worker from turns join tasks on tasks.id = task where agent = any($1)', [
    ['slow', 'quick'],
  ])
  expect(rows.map(({ worker }) => worker).sort()).toEqual(workers.map(({ id }) => id).sort())
  finish()
  await platform.client.waitForEnd(slow.task.id)
  expect((await platform.client.finishedTask({ agent: 'quick', input: 'again' })).turns).toMatchObject([
    { status: 'completed', attempt: 1 },
  ])
})

test('an API that is restarted again and again under load takes each request once and loses none', async () => {
  const port = new URL(platform.url).port
  const wanted = Array.from({ length: 40 }, (_, i) => i)
  const posting = Promise.all(wanted.map(insist))
  posting.catch(() => {})
  for (let restart = 0; restart < 2; restart += 1) {
    await until('some were accepted', async () => (await acceptedSoFar()) >= (restart + 1) * 5)
    await currentApi().kill()
    await platform.startApi({ port })
  }
  const ids = await posting
  expect(await acceptedSoFar()).toBe(40)
  expect(new Set(ids).size).toBe(40)
  for (const id of ids) expect(await faultsOf(platform, id)).toEqual([])
  const { rows } = await platform.pg.query('select distinct status from tasks where metadata @> \'{"restarts":true}\'')
  expect(rows).toEqual([{ status: 'completed' }])

  /** As a client does it: the same request under the same key, until there is an answer. */
  async function insist(i: number): Promise<string> {
    const body = scripted([say(0, `${i}`), rest(i * 20)], { metadata: { restarts: true, i } })
    return until(
      'the request is answered',
      async () => {
        const reply = await platform.client.post<Accepted>('/v1/tasks', body, { 'idempotency-key': `restart-${i}` }).catch(() => null)
        return reply?.status === 201 && reply.body.task.id
      },
      { intervalMs: 200 },
    )
  }

  async function acceptedSoFar(): Promise<number> {
    return (await platform.pg.query('select count(*)::int from tasks where metadata @> \'{"restarts":true}\'')).rows[0].count
  }
})

function lastWorker() {
  const worker = platform.workers.findLast(({ hasExited }) => !hasExited())
  if (!worker) throw new Error('No worker is there')
  return worker
}

function currentApi() {
  const api = platform.apis.findLast(({ hasExited }) => !hasExited())
  if (!api) throw new Error('No API is there')
  return api
}
