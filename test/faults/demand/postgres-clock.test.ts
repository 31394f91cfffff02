/**
 * Users work while Postgres' clock jumps by minutes, ahead and back, again and again: no live worker loses a turn, so each attempt is the first one, and
 * the checker finds what it always wants. The test has a `now()` of its own in the database and moves it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { seededRandom } from '../../support/agents/scripts.ts'
import { createTestDatabase } from '../../support/engines/database.ts'
import { ownClockOf } from '../../support/engines/postgres-clock.ts'
import { startBench } from '../bench.ts'
import { violationsIn } from '../checker/checker.ts'
import { readSettings } from '../settings.ts'

const minute = 60_000
const jumps = 12
const users = 6

test('users work while the clock of Postgres is set ahead and back: each turn is one attempt, and nothing is missed', {
  timeout: 600_000,
}, async () => {
  const { url: databaseUrl } = await createTestDatabase()
  const setClock = await ownClockOf(databaseUrl)
  const bench = await startBench({ databaseUrl, env: { HEARTBEAT_MS: '800' } })
  onTestFinished(async () => void (await bench.close()))
  const random = seededRandom(readSettings(process.env).seed)
  let isOver = false
  const working = Array.from({ length: users }, (_, user) => work(user))
  for (let jump = 0; jump < jumps; jump += 1) {
    await sleep(500 + random() * 1_000)
    await setClock((random() - 0.5) * 60 * minute)
  }
  isOver = true
  await Promise.all(working)
  const history = await bench.rest()
  expect(violationsIn(history)).toEqual([])
  const turns = history.stored.flatMap(({ detail }) => detail.turns)
  expect(turns.length).toBeGreaterThanOrEqual(2 * users)
  expect(turns.filter(({ status, attempt }) => status !== 'completed' || attempt !== 1)).toEqual([])
  expect((await bench.platform.pg.query('select task from turns where deaths > 0')).rows).toEqual([])

  /** Deadlines follow the clock, so they are far beyond every jump. */
  async function work(user: number): Promise<void> {
    for (let n = 1; n <= 2 || !isOver; n += 1) {
      const story = (turnNumber: number) => ({ label: `u${user}n${n}`, turnNumber, words: 30, restMs: 100, asks: n % 2 })
      const task = await bench.crowd.promise(story(1), { timeoutMs: 24 * 60 * minute })
      const viewer = bench.crowd.join(task)
      await bench.crowd.promiseTurn(task, story(2))
      await viewer.ended
    }
  }
})
