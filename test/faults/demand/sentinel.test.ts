/**
 * A Redis master with two replicas and three Sentinels, with TLS and logins, under a nemesis: `npm run test:faults -- --sentinel`. First each of its faults
 * alone, then all of them and those of the processes and of Postgres at random, from as many seeds as `--runs` says.
 */
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type FaultySentinels, startFaultySentinels } from '../../support/engines/redis/faulty-sentinels.ts'
import { whyNoTlsServers } from '../../support/engines/redis/private-redis.ts'
import { startBench } from '../bench.ts'
import { createJudge } from '../judge-runs.ts'
import { sentinelStrikes } from '../nemesis.ts'
import { readSettings } from '../settings.ts'

const { seed, runs } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const strikesPerSeed = 8
let sentinels: FaultySentinels | null = null
const start = async () => {
  sentinels = await startFaultySentinels()
  return startBench({ several: sentinels })
}
const { judge, close } = createJudge(start, current => `npm run test:faults -- --sentinel --seed ${current}`)

afterAll(close)

describe.skipIf(whyNoTlsServers)(`Redis with Sentinels${whyNoTlsServers ? ` (skipped: ${whyNoTlsServers})` : ''}`, () => {
  const own = sentinelStrikes(() => sentinels).filter(({ isLoss }) => isLoss)

  afterEach(async () => expect(await sentinels?.refusals()).toEqual([]))

  test.each(own.map(strike => [strike.name, strike] as const))('%s', { timeout: 600_000 }, async (_, strike) => {
    await judge({ seed, users: 4, known: [strike], isOver: strikes => strikes >= 2 })
  })

  test.each(seeds)('mixed nemesis, seed %i', { timeout: 600_000 }, async current => {
    await judge({ seed: current, users: 8, known: sentinelStrikes(() => sentinels), isOver: strikes => strikes >= strikesPerSeed })
  })
})
