/** The bill is right: a thousand turns whose workers are killed, whose models fail and refuse, and whose callers cancel. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { BilledEnd } from '../support/agents/billed-agent.ts'
import { openBill, playBilledTurns, reportOf, startBilledWorker } from '../support/agents/billed-turns.ts'
import { seededRandom } from '../support/agents/scripts.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const count = 1_000
let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: shortLease })
  await Promise.all(Array.from({ length: 4 }, () => startBilledWorker(platform)))
})
afterAll(() => platform.close())

test('the sum of all reports is what the provider has billed', { timeout: 3_600_000 }, async () => {
  const random = seededRandom(7)
  const bill = openBill()
  const tasks = await playBilledTurns(
    platform,
    Array.from({ length: count }, () => planOf(random())),
    bill.path,
  )
  const { inputTokens = 0, outputTokens = 0 } = bill.total()
  // An aborted response is reported once its worker has heard of the cancel.
  await until('all is reported', async () => (await reportOf(platform)).total.tokens >= inputTokens + outputTokens)
  for (const by of ['day', 'agent', 'model', 'key', 'tenant']) {
    const { data, total } = await reportOf(platform, `by=${by}`)
    expect([by, total.usage]).toEqual([by, { inputTokens, outputTokens }])
    expect(total.turns).toBe(count)
    expect(data.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(total.tokens)
  }
  const totals = await platform.pg.query(`select sum((usage_total->>'inputTokens')::float8) as input, sum(cost) as cost from turns`)
  expect(totals.rows[0].input).toBe(inputTokens)
  expect(totals.rows[0].cost).toBeCloseTo((inputTokens * 0.15 + outputTokens * 0.6) / 1_000_000, 9)
  for (const task of tasks.slice(0, 50)) expect((await platform.client.remove(task)).status).toBe(204)
  expect((await reportOf(platform)).total.usage).toEqual({ inputTokens, outputTokens })
})

/** Three workers that die in a row end a turn, too. */
function planOf(chance: number): BilledEnd[] {
  if (chance < 0.02) return ['crash']
  if (chance < 0.025) return ['crash', 'crash', 'crash']
  if (chance < 0.15) return ['throw']
  if (chance < 0.25) return ['refused', 'throw']
  if (chance < 0.3) return ['throw', 'refused', 'throw']
  if (chance < 0.36) return ['hang']
  if (chance < 0.42) return ['slow']
  if (chance < 0.45) return ['refused', 'slow']
  return ['ok']
}
