/**
 * Processes whose wall clocks are minutes off. Deadlines, delays and expiries are Postgres' time: a turn begins no earlier, and ends no later, than
 * it was asked to. Times are judged by what Postgres wrote down, never by a clock of this test.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { openTestKeyring, pepper } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Client } from '../support/platform/platform-client.ts'

const minutes = 60_000
const shifts = [
  ['five minutes ahead', 5 * minutes],
  ['five minutes behind', -5 * minutes],
] as const

const clockOff = (ms: number) => ({
  NODE_OPTIONS: `--import=${new URL('../support/process/shifted-clock.mjs', import.meta.url).href}`,
  CLOCK_SHIFT_MS: String(ms),
})

let platform: Platform
let client: Client

/** One API and one worker: each is the only one of its kind, so there is no other whose clock would do. */
async function start({ apiMs = 0, workerMs = 0 }: { apiMs?: number; workerMs?: number }): Promise<void> {
  platform = await startPlatform({ apis: 0, workers: 0 })
  const api = await platform.startApi({ env: clockOff(apiMs) })
  client = platform.clientOf(api)
  await platform.startWorker({ ...clockOff(workerMs), RIVULET_URL: api.url })
}

/** How long a task's only turn waited before its first attempt, and how old it is, by Postgres. */
async function timesOf(task: string): Promise<{ waitedMs: number; ageMs: number }> {
  const ms = (interval: string) => `(extract(epoch from ${interval}) * 1000)::float8`
  const { rows } = await platform.pg.query(
    `select ${ms('started_at - queued_at')} as "waitedMs", ${ms('now() - queued_at')} as "ageMs" from turns where task = $1`,
    [task],
  )
  return rows[0]
}

describe.each([
  ...shifts.map(([how, ms]) => [`an API whose clock is ${how}`, { apiMs: ms }] as const),
  ...shifts.map(([how, ms]) => [`a worker whose clock is ${how}`, { workerMs: ms }] as const),
])('%s', (_, skew) => {
  beforeAll(() => start(skew))
  afterAll(() => platform.close())

  test('gives each turn the time that it was given, from the start of its first attempt', async () => {
    const quick = await client.finishedTask({ agent: 'echo', input: 'hello', timeoutMs: 60_000 })
    expect(quick.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    const { ageMs } = await timesOf(quick.task.id)
    expect([ageMs >= 0, ageMs < 2 * minutes]).toEqual([true, true])

    const slow = await client.createTask(scripted([say(0, 'begun'), rest(20_000), say(0, 'too late')], { timeoutMs: 3_000 }))
    const { turns } = await client.waitForEnd(slow.task.id)
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'deadline_exceeded' } }])
    expect((await client.messages(slow.task.id)).at(-1)).toMatchObject({ content: { text: 'begun' } })
  })

  test('begins a delayed turn when its time has come, not before, and not minutes later', async () => {
    const delayed = await Promise.all([4_000, 2_000, 0].map(delayMs => client.createTask({ agent: 'echo', input: 'hello', delayMs })))
    for (const [i, delayMs] of [4_000, 2_000, 0].entries()) {
      const { id } = delayed[i]?.task ?? { id: '' }
      expect((await client.waitForEnd(id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
      expect((await timesOf(id)).waitedMs).toBeGreaterThanOrEqual(delayMs)
      expect(await faultsOf({ client, log: platform.log }, id)).toEqual([])
    }
  })
})

describe.each(shifts)('an API whose clock is %s', (_, apiMs) => {
  test('takes a key until it expires, and no longer', async () => {
    const env = { RIVULET_KEY: 'the-root-key-of-this-test', KEY_PEPPER: pepper }
    const closed = await startPlatform({ apis: 0, workers: 0, env })
    onTestFinished(() => closed.close())
    const api = await closed.startApi({ env: clockOff(apiMs) })
    const keyring = openTestKeyring(closed.databaseUrl)
    onTestFinished(() => keyring.close())
    const statusWith = async (expiresInSeconds: number) => {
      const { key } = await keyring.create({ tenant: 'acme', scopes: ['tasks:read'], expiresInSeconds })
      return (await fetch(`${api.url}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })).status
    }
    expect(await statusWith(120)).toBe(200)
    expect(await statusWith(-120)).toBe(401)
  })
})
