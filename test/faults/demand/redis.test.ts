/** A Redis that is behind, full, forgetful by choice, cannot write its file, or takes long to read it. Needs one from PATH. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Turn } from '@rivulet/protocol'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { hasNativeRedis, startPrivateRedis } from '../../support/engines/redis/private-redis.ts'
import { createClient } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'
import { violationsIn } from '../checker/checker.ts'
import { hasHeard, type Story } from '../checker/story.ts'

const talk = (label: string): Story => ({ label, turnNumber: 1, words: 60, restMs: 60 })

let bench: Bench

if (!hasNativeRedis) console.log('No redis-server on PATH: faults that need one are left out')

describe.skipIf(!hasNativeRedis)('Redis', { timeout: 180_000 }, () => {
  beforeAll(async () => {
    bench = await startBench()
  })
  afterAll(() => bench.close())

  test('fails over to a replica that is behind', async () => {
    const replica = await startPrivateRedis()
    onTestFinished(replica.close)
    const { hostname, port, password } = new URL(bench.server.url)
    // Servers that stand in for each other have one password.
    await replica.client.config('SET', 'masterauth', password, 'requirepass', password)
    await replica.client.replicaof(hostname, port)
    await until('the replica follows', async () => /master_link_status:up/.test(await replica.client.info('replication')))
    const viewers = await beginStories(['a', 'b', 'c'])
    // The replica does not receive the following writes.
    replica.freeze()
    for (const viewer of viewers) await viewer.until('more words', heard => hasHeard(heard, 20))
    bench.noteLoss()
    bench.redis.down()
    await bench.server.kill()
    replica.wake()
    await replica.client.replicaof('NO', 'ONE')
    bench.redis.repoint(replica.url)
    bench.redis.up()
    expect(violationsIn(await bench.rest())).toEqual([])
    // The others go on where they were.
    await bench.server.restart()
    bench.redis.repoint(bench.server.url)
  })

  test('is out of memory for a while: workers wait, and continue when memory is free', async () => {
    const viewers = await beginStories(['d', 'e'])
    await fill()
    const said = viewers.map(viewer => viewer.text().length)
    // Accepted at once, or later: its client insists.
    const late = bench.crowd.promise(talk('late'))
    await until('nothing more is heard', async () => {
      const before = viewers.map(viewer => viewer.text().length)
      await new Promise(resolve => setTimeout(resolve, 500))
      return viewers.every((viewer, i) => viewer.text().length === before[i])
    })
    await empty()
    bench.crowd.join(await late)
    const history = await bench.rest()
    expect(violationsIn(history)).toEqual([])
    expect(viewers.every((viewer, i) => viewer.text().length > (said[i] ?? 0))).toBe(true)
    for (const { detail } of history.stored) expect(detail.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  })

  test('is out of memory for longer than a worker waits: the attempt fails with stream_backpressure, and another can succeed', async () => {
    await Promise.all(bench.workers().map(worker => worker.kill()))
    await bench.startWorker({ BACKPRESSURE_MS: '1000' })
    bench.begin()
    const tasks = await Promise.all([1, 5].map(maxAttempts => bench.crowd.promise(talk(`at most ${maxAttempts}`), { maxAttempts })))
    const viewers = tasks.map(task => bench.crowd.join(task))
    for (const viewer of viewers) await viewer.until('a few words', heard => hasHeard(heard, 5))
    await fill()
    // Committed while Redis takes nothing; announced when it does.
    const [once, often] = await Promise.all(
      tasks.map(task => until('its attempt has failed', () => turnOf(task, ({ status }) => status !== 'running'))),
    )
    expect(once).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'stream_backpressure' } })
    expect(often).toMatchObject({ status: 'queued', attempt: 1 })
    await empty()
    const history = await bench.rest()
    expect(violationsIn(history)).toEqual([])
    expect(await turnOf(tasks[1] ?? '', () => true)).toMatchObject({ status: 'completed', attempt: 2 })
    await bench.startWorker()
  })

  test('is wiped, and out of memory for longer than a lease: live workers keep their turns, and no handler runs twice', async () => {
    const viewers = await beginStories(['j', 'k', 'l'])
    const tasks = viewers.map(({ journal }) => journal.task)
    bench.noteLoss()
    onTestFinished(empty)
    const { client } = bench.server
    // Every write is refused from here on, also that which opens the log of a turn anew.
    await client.config('SET', 'maxmemory', '1')
    await client.flushall()
    const { rows } = await bench.platform.pg.query<{ began: Date; epochs: string }>(
      "select now() as began, string_agg(epoch::text, ' ' order by id) as epochs from turns where task = any($1)",
      [tasks],
    )
    const [before] = rows
    // Three leases of 2.5 s each, in which every log was tried to be opened anew.
    const isOver = `select from turns where task = any($1) and now() > $2::timestamptz + interval '7500 ms'
      having string_agg(epoch::text, ' ' order by id) <> $3 and count(*) = $4`
    const values = [tasks, before?.began, before?.epochs, tasks.length]
    await until('three leases have passed', async () => (await bench.platform.pg.query(isOver, values)).rowCount === 1, {
      timeoutMs: 60_000,
    })
    await empty()
    const history = await bench.rest()
    expect(violationsIn(history)).toEqual([])
    for (const { detail } of history.stored) expect(detail.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    const claims = history.runs.filter(({ task }) => tasks.includes(task)).map(({ task }) => task)
    expect(claims.toSorted()).toEqual(tasks.toSorted())
  })

  test('breaks connections while viewers connect: each gets its stream, or 503 and when to retry', async () => {
    const api = createClient(() => bench.urls[0] ?? '')
    const tasks = await Promise.all(Array.from({ length: 30 }, () => api.createTask({ agent: 'scripted', start: false })))
    const statuses: number[] = []
    const opened: Promise<void>[] = []
    const open = async (url: string) => {
      const leaving = new AbortController()
      const response = await fetch(url, { signal: leaving.signal })
      if (response.status === 503) expect(await response.json()).toMatchObject({ error: { code: 'dependency_unavailable' } })
      statuses.push(response.status)
      leaving.abort()
    }
    await bench.server.client.config('RESETSTAT')
    // Late replies, so that viewers subscribe while the API still waits for the first replies on its new connection.
    bench.redis.slow({ latencyMs: 8 })
    onTestFinished(bench.redis.up)
    for (let round = 0; round < 20; round += 1) {
      bench.redis.reset()
      // One after the other, so that some come at the moment at which the API subscribes anew.
      for (const [i, { task }] of tasks.entries()) {
        opened.push(open(`${bench.urls[i % 2]}/v1/tasks/${task.id}/events`))
        await sleep(5)
      }
    }
    await Promise.all(opened)
    expect(statuses.filter(status => status !== 200 && status !== 503)).toEqual([])
    expect(statuses).toContain(200)
    // Redis rejects a command that is not for subscribers, and the API closes the connection of all its viewers for that.
    const rejections = (await bench.server.client.info('commandstats')).matchAll(/^cmdstat_(\w+):.*rejected_calls=([1-9]\d*)/gm)
    expect(Array.from(rejections, ([, command, count]) => `${command} ${count}`)).toEqual([])
  })

  test('may evict keys: an API that uses it is not ready', async () => {
    await bench.server.client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const reply = await fetch(`${bench.urls[0]}/readyz`)
    expect(reply.status).toBe(503)
    expect(await reply.text()).toContain('noeviction')
    await bench.server.client.config('SET', 'maxmemory-policy', 'noeviction')
    expect((await fetch(`${bench.urls[0]}/readyz`)).status).toBe(200)
  })

  test('cannot write its file, and refuses everything: everything waits for it', async () => {
    const { client } = bench.server
    const [, home = ''] = (await client.config('GET', 'dir')) as string[]
    const viewers = await beginStories(['f', 'g'])
    // What it saves takes the place of this, which it cannot.
    const inTheWay = join(home, 'dump.rdb')
    rmSync(inTheWay, { recursive: true, force: true })
    mkdirSync(inTheWay)
    await client.config('SET', 'save', '3600 1')
    await client.bgsave()
    const refused = await until('writes are refused', () => client.set('probe', '1').then(() => null, String))
    expect(refused).toContain('MISCONF')
    expect((await fetch(`${bench.urls[0]}/healthz`)).status).toBe(200)
    rmSync(inTheWay, { recursive: true })
    await client.bgsave()
    await client.config('SET', 'save', '')
    const history = await bench.rest()
    expect(violationsIn(history)).toEqual([])
    expect(viewers).toHaveLength(2)
    for (const { detail } of history.stored) expect(detail.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  })

  test('returns with so much data that it replies LOADING for a while: everything waits, and continues', async () => {
    const { client, url, kill, restart } = bench.server
    for (let part = 0; part < 100; part += 1) await client.eval(populate, 0, `ballast:${part}:`)
    const viewers = await beginStories(['h', 'i'])
    bench.noteLoss()
    await kill()
    const back = restart()
    const impatient = new Redis(url, { enableReadyCheck: false, maxRetriesPerRequest: null, retryStrategy: () => 10 })
    onTestFinished(() => impatient.disconnect())
    impatient.on('error', () => {})
    const refused = await until('it replies LOADING', () => impatient.get('probe').then(() => null, String), { intervalMs: 10 })
    expect(refused).toContain('LOADING')
    expect((await fetch(`${bench.urls[0]}/healthz`)).status).toBe(200)
    const late = bench.crowd.promise(talk('late'))
    await back
    bench.crowd.join(await late)
    const history = await bench.rest()
    expect(violationsIn(history)).toEqual([])
    expect(viewers).toHaveLength(2)
    for (const { detail } of history.stored) expect(detail.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  })
})

/** Half a gigabyte in all, which takes seconds to read. */
const populate = `for i = 1, 20000 do redis.call('SET', ARGV[1] .. i, string.rep('x', 150)) end`

/** From now on it takes no more, until the test is over. */
async function fill(): Promise<void> {
  onTestFinished(empty)
  const { client } = bench.server
  const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  await client.config('SET', 'maxmemory', String(Math.floor(used / 2)))
}

async function empty(): Promise<void> {
  await bench.server.client.config('SET', 'maxmemory', '0')
}

/** A task's only turn, where it is as wanted. */
async function turnOf(task: string, isWanted: (turn: Turn) => boolean): Promise<Turn | null> {
  const stored = await bench.crowd.read(task)
  const turn = stored?.detail.turns[0]
  return turn && isWanted(turn) ? turn : null
}

/** Stories that are under way, each with a viewer. */
async function beginStories(labels: readonly string[]) {
  bench.begin()
  const viewers = []
  for (const label of labels) viewers.push(bench.crowd.join(await bench.crowd.promise(talk(label))))
  for (const viewer of viewers) await viewer.until('a few words', heard => hasHeard(heard, 5))
  return viewers
}
