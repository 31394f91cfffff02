/**
 * A limit of 3 turns for each key while a nemesis harasses the platform, from the seeds of the bench: at no moment do the rows have a fourth turn of a key
 * that runs, whichever processes die.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../../support/agents/scripts.ts'
import { createClient } from '../../support/platform/platform-client.ts'
import { type Bench, startBench } from '../bench.ts'
import { violationsIn } from '../checker/checker.ts'
import { harass, strikesFor } from '../nemesis.ts'
import { readSettings } from '../settings.ts'

const { seed, runs } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const strikes = 8
const tasks = 60
const limit = 3

let bench: Bench

beforeAll(async () => {
  bench = await startBench()
  const client = createClient(() => bench.urls[0] ?? '')
  const set = await client.send('PUT', '/v1/limits/scripted', {
    body: JSON.stringify({ perKey: limit }),
    headers: { 'content-type': 'application/json' },
  })
  expect(set.status).toBe(200)
})
afterAll(() => bench.close())

test.each(seeds)('seed %i: a limit of 3 is never 4', { timeout: 600_000 }, async current => {
  bench.begin()
  const random = seededRandom(current)
  const known = strikesFor({ mayLose: current % 2 === 1 })
  const over = new AbortController()
  const most = mostRunning(over.signal)
  await Promise.all(Array.from({ length: tasks }, (_, i) => promise(i)))
  for (let struck = 0; struck < strikes; struck += 1) {
    await sleep(random() * 1_200)
    await harass(bench, random, known)
  }
  await bench.revive({ disarm: true })
  const history = await bench.rest()
  over.abort()
  expect(violationsIn(history)).toEqual([])
  const turns = history.stored.flatMap(({ detail }) => detail.turns)
  expect(turns).toHaveLength(tasks)
  // A turn may have had the bad luck of three workers that were killed.
  expect(turns.filter(({ status, error }) => status !== 'completed' && error?.code !== 'worker_lost')).toEqual([])
  expect(await most).toBe(limit)
})

function promise(i: number): Promise<string> {
  const story = { label: `task ${i}`, turnNumber: 1, words: 20, restMs: 50 }
  return bench.crowd.promise(story, { concurrencyKey: `key ${i % 2}`, maxAttempts: 20 })
}

/** Every look is one statement, so it sees the rows as they were at one moment. */
async function mostRunning(signal: AbortSignal): Promise<number> {
  let most = 0
  while (!signal.aborted) {
    const { rows } = await bench.platform.pg.query<{ count: number }>(`
      select count(*)::int from turns join tasks on tasks.id = turns.task where turns.status = 'running' group by concurrency_key`)
    most = Math.max(most, ...rows.map(({ count }) => count))
    await sleep(10)
  }
  return most
}
