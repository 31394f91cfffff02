/** Shares of the workers, with two APIs: a flood delays no other key, a limit is never exceeded, a paused agent starts nothing. */
import { createClient, type RivuletClient } from '@rivulet/client'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform
let client: RivuletClient
let otherApi: RivuletClient

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0 })
  client = createClient({ url: platform.url })
  otherApi = createClient({ url: platform.urls[1] ?? '' })
})
afterAll(() => platform.close())

/** An agent whose turns end one by one, when the test lets them. */
function gatedAgent(name: string) {
  const running: { key: string; finish: () => void }[] = []
  const started: string[] = []
  let most = 0
  const agent = defineAgent(name, async turn => {
    const key = String(turn.text)
    started.push(key)
    await new Promise<void>((resolve, reject) => {
      const finish = () => {
        // A turn may be aborted after its end, too.
        if (running.includes(own)) running.splice(running.indexOf(own), 1)
        resolve()
      }
      const own = { key, finish }
      running.push(own)
      most = Math.max(most, running.length)
      turn.signal.addEventListener('abort', () => {
        finish()
        reject(turn.signal.reason)
      })
    })
  })
  return { agent, running, started, most: () => most, finishOne, finishOneOf, finishAllBut, finishAll }

  function finishOne(): void {
    running[0]?.finish()
  }

  /** Only while so many run, because a worker that is slow to take the next one would otherwise run fewer at a time. */
  function finishOneOf(count: number): void {
    if (running.length >= count) finishOne()
  }

  /** The oldest, at once, because slots are kept free for a minute only. */
  function finishAllBut(count: number): void {
    for (const { finish } of running.slice(0, Math.max(0, running.length - count))) finish()
  }

  function finishAll(): void {
    finishAllBut(0)
  }
}

test('of a flood of 160 and one task of another key, the one is next, at whichever API they arrive', async () => {
  const gate = gatedAgent('flooded')
  await startOwnWorker(platform, [gate.agent], { concurrency: 4 })
  const flood = Array.from({ length: 160 }, (_, i) => (i % 2 ? client : otherApi))
  await Promise.all(flood.map(api => api.tasks.create({ agent: 'flooded', input: 'flood', concurrencyKey: 'flood' })))
  await until('the workers are busy', () => gate.running.length === 4)
  await otherApi.tasks.create({ agent: 'flooded', input: 'late', concurrencyKey: 'late' })
  const before = gate.started.length
  // Seldom, because the late one is on its way meanwhile.
  const finishing = () => {
    gate.finishOneOf(4)
    return gate.started.includes('late')
  }
  await until('the late one has begun', finishing, { intervalMs: 500 })
  // Only those that a worker took while it was on its way to the queue.
  expect(gate.started.indexOf('late') - before).toBeLessThan(20)
  await until('all have ended', () => {
    gate.finishAll()
    return gate.started.length === 161 && gate.running.length === 0
  })
})

test('once a second key has used an agent, a flood leaves slots free, and the next turn of that key starts before any other ends', async () => {
  const gate = gatedAgent('spared')
  await startOwnWorker(platform, [gate.agent], { concurrency: 20 })
  let floodSize = 0
  await flood(160)
  await until('every slot is taken by the flood', () => gate.running.length === 20)
  await otherApi.tasks.create({ agent: 'spared', input: 'first', concurrencyKey: 'other' })
  // A few turns at a time and seldom, because where slots are taken quickly none is kept free.
  const emptying = async () => {
    const { rows } = await platform.pg.query(
      `select count(*) filter (where turns.status = 'queued')::int as queued, count(*) filter (where turns.status = 'running')::int as running,
         (select count(*) from outbox where agent = 'spared' and waits)::int as waiting
       from turns join tasks on tasks.id = turns.task where agent = 'spared' and sent is not null`,
    )
    const [{ queued, running, waiting }] = rows
    // A flood that has ended leaves nothing to keep slots free from.
    if (waiting < 40) await flood(40)
    if (queued === 0 && running === 16 && waiting >= 40) return true
    gate.finishAllBut(16)
    return false
  }
  await until('the flood has emptied its queue, and leaves four slots', emptying, { intervalMs: 200 })
  await until('both APIs report the four', async () => {
    const spare = await Promise.all(platform.urls.map(url => metric(url, 'rivulet_slots_kept_free', { agent: 'spared' })))
    return spare.every(slots => slots === 4)
  })
  const ended = gate.started.length - gate.running.length
  for (const api of [client, otherApi]) await api.tasks.create({ agent: 'spared', input: 'next', concurrencyKey: 'other' })
  await until('both have begun', () => gate.started.filter(key => key === 'next').length === 2)
  expect(gate.started.length - gate.running.length).toBe(ended)
  await until('all have ended', () => {
    gate.finishAll()
    return gate.started.length === floodSize + 3 && gate.running.length === 0
  })

  async function flood(count: number): Promise<void> {
    floodSize += count
    const apis = Array.from({ length: count }, (_, i) => (i % 2 ? client : otherApi))
    await Promise.all(apis.map(api => api.tasks.create({ agent: 'spared', input: 'flood', concurrencyKey: 'flood' })))
  }
})

test('a limit of 3 for each key is never 4, also while workers die and turns are tried again', async () => {
  const gate = gatedAgent('limited')
  const first = await startOwnWorker(platform, [gate.agent], { concurrency: 20 })
  await client.limits.set('limited', { perKey: 3 })
  const send = (api: RivuletClient) => api.tasks.create({ agent: 'limited', input: 'x', concurrencyKey: 'one', maxAttempts: 5 })
  await Promise.all(Array.from({ length: 20 }, (_, i) => send(i % 2 ? client : otherApi)))
  await until('three run', () => gate.running.length === 3)
  const second = gatedAgent('limited')
  await startOwnWorker(platform, [second.agent], { concurrency: 20 })
  await first.stop()
  await until('they go on at the other worker', () => second.running.length === 3)
  await until('all have ended', async () => {
    const { rows } = await platform.pg.query(
      `select count(*) filter (where turns.status = 'running')::int as running, count(*) filter (where turns.status <> 'completed')::int as open
       from turns join tasks on tasks.id = turns.task where agent = 'limited'`,
    )
    expect(rows[0].running).toBeLessThanOrEqual(3)
    second.finishOne()
    return rows[0].open === 0
  })
  expect([gate.most(), second.most()]).toEqual([3, 3])
  expect(await client.limits.list()).toEqual([{ agent: 'limited', perKey: 3 }])
  await client.limits.remove('limited')
  await expect(client.limits.get('limited')).rejects.toMatchObject({ code: 'not_found' })
})

test('a limit that is set while turns wait in the queue holds for them, too', async () => {
  const gate = gatedAgent('tightened')
  await platform.client.post('/internal/hello', { worker: 'not yet', agents: [{ name: 'tightened', description: '' }] })
  await Promise.all(Array.from({ length: 10 }, () => client.tasks.create({ agent: 'tightened', input: 'x' })))
  await client.limits.set('tightened', { concurrency: 2 })
  await startOwnWorker(platform, [gate.agent], { concurrency: 20 })
  await until('two run', () => gate.running.length === 2)
  await until('all have ended', async () => {
    gate.finishOne()
    const { data } = await client.tasks.list({ agent: 'tightened', limit: 100 })
    return data.every(({ status }) => status === 'completed')
  })
  expect(gate.most()).toBe(2)
})

test('a paused agent accepts tasks and starts none until it is resumed, also those that were in the queue', async () => {
  const gate = gatedAgent('paused')
  await platform.client.post('/internal/hello', { worker: 'not yet', agents: [{ name: 'paused', description: '' }] })
  await client.tasks.create({ agent: 'paused', input: 'before' })
  expect(await client.agents.pause('paused')).toMatchObject({ name: 'paused', paused: true })
  const worker = await startOwnWorker(platform, [gate.agent])
  await otherApi.tasks.create({ agent: 'paused', input: 'after' })
  await until('both wait for their share', async () => {
    const { rows } = await platform.pg.query(`select count(*)::int as count from outbox where agent = 'paused' and waits`)
    return rows[0].count === 2
  })
  expect(gate.started).toEqual([])
  expect((await otherApi.agents.list()).find(({ name }) => name === 'paused')).toMatchObject({ paused: true, queued: 2 })
  expect(await otherApi.agents.resume('paused')).toMatchObject({ paused: false })
  await until('both have begun', () => gate.started.length === 2)
  expect(new Set(gate.started)).toEqual(new Set(['before', 'after']))
  await expect(client.agents.remove('paused')).rejects.toMatchObject({ code: 'agent_in_use' })
  await worker.stop()
})

test('a delayed turn takes its share when it is due', async () => {
  const gate = gatedAgent('delayed')
  await startOwnWorker(platform, [gate.agent])
  await client.limits.set('delayed', { perKey: 1 })
  await client.tasks.create({ agent: 'delayed', input: 'now' })
  await until('the first runs', () => gate.running.length === 1)
  await client.tasks.create({ agent: 'delayed', input: 'soon', delayMs: 300 })
  await until('the delayed one waits for its share', async () => {
    const { rows } = await platform.pg.query(`select count(*)::int as count from outbox where agent = 'delayed' and waits`)
    return rows[0].count === 1
  })
  gate.finishOne()
  await until('it has begun', () => gate.started.at(-1) === 'soon')
  expect(gate.most()).toBe(1)
  gate.finishOne()
})

test.each([
  [{ concurrency: 0 }, '/concurrency'],
  [{ perKey: -1 }, '/perKey'],
  [{ perMinute: 1.5 }, '/perMinute'],
  [{ weights: { a: 0 } }, '/weights/a'],
  [{ weights: 7 }, '/weights'],
  [{ surprise: 1 }, ''],
])('limits that make no sense are refused: %j', async (body, path) => {
  const refused = await client.limits.set('echo', body as never).then(
    () => null,
    error => error,
  )
  expect(refused).toMatchObject({ code: 'validation_failed' })
  if (path) expect(JSON.stringify(refused.details)).toContain(path)
})

test('limits and pauses of an unknown agent are refused', async () => {
  await expect(client.limits.set('nowhere', { perKey: 1 })).rejects.toMatchObject({ code: 'not_found' })
  await expect(client.agents.pause('nowhere')).rejects.toMatchObject({ code: 'not_found' })
  await expect(client.agents.remove('nowhere')).rejects.toMatchObject({ code: 'not_found' })
})
