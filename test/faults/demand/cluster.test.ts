/**
 * A Redis Cluster of six servers, with TLS and logins, under a nemesis: `npm run test:faults -- --cluster`. First each of its faults alone, then all of
 * them and those of the processes and of Postgres at random, from as many seeds as `--runs` says.
 */
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type FaultyCluster, startFaultyCluster } from '../../support/engines/redis/faulty-cluster.ts'
import { whyNoTlsServers } from '../../support/engines/redis/private-redis.ts'
import { startBench } from '../bench.ts'
import { createJudge } from '../judge-runs.ts'
import { clusterStrikes } from '../nemesis.ts'
import { readSettings } from '../settings.ts'

const { seed, runs } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const strikesPerSeed = 8
let cluster: FaultyCluster | null = null
const start = async () => {
  cluster = await startFaultyCluster()
  return startBench({ several: cluster })
}
const { judge, close } = createJudge(start, current => `npm run test:faults -- --cluster --seed ${current}`)

afterAll(close)

describe.skipIf(whyNoTlsServers)(`a Redis Cluster${whyNoTlsServers ? ` (skipped: ${whyNoTlsServers})` : ''}`, () => {
  const own = clusterStrikes(() => cluster).filter(({ isLoss }) => isLoss)

  afterEach(async () => expect(await cluster?.refusals()).toEqual([]))

  test.each(own.map(strike => [strike.name, strike] as const))('%s', { timeout: 600_000 }, async (_, strike) => {
    await judge({ seed, users: 4, known: [strike], isOver: strikes => strikes >= 2 })
  })

  test.each(seeds)('mixed nemesis, seed %i', { timeout: 600_000 }, async current => {
    await judge({ seed: current, users: 8, known: clusterStrikes(() => cluster), isOver: strikes => strikes >= strikesPerSeed })
  })
})
