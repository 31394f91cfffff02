/** A Redis that is behind, full, forgetful by choice, or cannot write its file. Needs one from PATH. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { hasNativeRedis, startPrivateRedis } from '../../support/private-redis.ts'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'
import { violationsIn } from '../checker.ts'
import { hasHeard, type Story } from '../story.ts'

const talk = (label: string): Story => ({ label, turn: 1, words: 60, restMs: 60 })

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
    const { hostname, port } = new URL(bench.server.url)
    await replica.client.replicaof(hostname, port)
    await until('the replica follows', async () => /master_link_status:up/.test(await replica.client.info('replication')))
    const viewers = await beginStories(['a', 'b', 'c'])
    // It hears nothing of what comes now.
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

  test('is out of memory for a while: whoever speaks waits, and new tasks are accepted', async () => {
    const viewers = await beginStories(['d', 'e'])
    const { client } = bench.server
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
    await client.config('SET', 'maxmemory', String(Math.floor(used / 2)))
    const said = viewers.map(viewer => viewer.text().length)
    const late = await bench.crowd.promise(talk('late'))
    await until('nothing more is heard', async () => {
      const before = viewers.map(viewer => viewer.text().length)
      await new Promise(resolve => setTimeout(resolve, 500))
      return viewers.every((viewer, i) => viewer.text().length === before[i])
    })
    await client.config('SET', 'maxmemory', '0')
    bench.crowd.join(late)
    const history = await bench.rest()
    expect(violationsIn(history)).toEqual([])
    expect(viewers.every((viewer, i) => viewer.text().length > (said[i] ?? 0))).toBe(true)
    for (const { detail } of history.stored) expect(detail.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  })

  test('may evict keys: nobody is sent to an API that uses it', async () => {
    await bench.server.client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const answer = await fetch(`${bench.urls[0]}/readyz`)
    expect(answer.status).toBe(503)
    expect(await answer.text()).toContain('noeviction')
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
})

/** Stories that are under way, each with a viewer. */
async function beginStories(labels: readonly string[]) {
  bench.begin()
  const viewers = []
  for (const label of labels) viewers.push(bench.crowd.join(await bench.crowd.promise(talk(label))))
  for (const viewer of viewers) await viewer.until('a few words', heard => hasHeard(heard, 5))
  return viewers
}
