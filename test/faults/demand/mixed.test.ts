/**
 * The mixed nemesis: `npm run test:faults`. One platform for all seeds, and a new one after a violation. A soak runs for as many minutes as `--soak` says,
 * and is judged chapter by chapter: each is a seed of its own.
 */
import { afterAll, test } from 'vitest'
import { hasNativeRedis } from '../../support/engines/redis/private-redis.ts'
import { startBench } from '../bench.ts'
import { createJudge } from '../judge-runs.ts'
import { strikesFor } from '../nemesis.ts'
import { readSettings } from '../settings.ts'

const { seed, runs, soakMinutes } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const strikesPerSeed = 8
const chapterMs = 120_000
const { judge, close } = createJudge(startBench, current => `npm run test:faults -- --seed ${current}`)

afterAll(close)

if (!hasNativeRedis) console.log('No redis-server on PATH: faults that need an append-only file are left out')

test.runIf(soakMinutes === 0).each(seeds)('mixed nemesis, seed %i', { timeout: 600_000 }, async current => {
  await judge({ seed: current, users: 8, known: knownTo(current), isOver: strikes => strikes >= strikesPerSeed })
})

test.runIf(soakMinutes > 0)(`soak of ${soakMinutes} minutes, seed ${seed}`, { timeout: (soakMinutes + 15) * 60_000 }, async () => {
  const end = performance.now() + soakMinutes * 60_000
  for (let chapter = 0; performance.now() < end; chapter += 1) {
    const pause = Math.min(end, performance.now() + chapterMs)
    await judge({ seed: seed + chapter, users: 8, known: knownTo(seed + chapter), isOver: () => performance.now() > pause })
  }
})

/** Every other seed leaves the logs whole: those prove more. */
function knownTo(current: number) {
  return strikesFor({ mayLose: current % 2 === 1 })
}
