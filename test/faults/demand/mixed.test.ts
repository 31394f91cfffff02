/**
 * The mixed nemesis: `npm run test:faults`. One platform for all seeds, and a new one after a violation. A soak runs for as many minutes as `--soak` says,
 * and is judged chapter by chapter: each is a seed of its own.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { hasNativeRedis } from '../../support/engines/private-redis.ts'
import { type Bench, startBench } from '../bench.ts'
import { addFigures, describeFigures, type Figures } from '../checker/figures.ts'
import { type MixedRun, runMixed } from '../mixed-run.ts'
import { readSettings } from '../settings.ts'

const { seed, runs, soakMinutes } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const strikesPerSeed = 8
const chapterMs = 120_000

let bench: Bench | null = null
let sum: Figures | null = null

afterAll(async () => void (await bench?.close()))

if (!hasNativeRedis) console.log('No redis-server on PATH: faults that need an append-only file are left out')

test.runIf(soakMinutes === 0).each(seeds)('mixed nemesis, seed %i', { timeout: 600_000 }, async current => {
  await judge({ seed: current, users: 8, isOver: strikes => strikes >= strikesPerSeed })
})

test.runIf(soakMinutes > 0)(`soak of ${soakMinutes} minutes, seed ${seed}`, { timeout: (soakMinutes + 15) * 60_000 }, async () => {
  const end = performance.now() + soakMinutes * 60_000
  for (let chapter = 0; performance.now() < end; chapter += 1) {
    const pause = Math.min(end, performance.now() + chapterMs)
    await judge({ seed: seed + chapter, users: 8, isOver: () => performance.now() > pause })
  }
})

async function judge(run: MixedRun): Promise<void> {
  bench ??= await startBench()
  bench.begin()
  const began = performance.now()
  let violations = ['it did not come to an end']
  try {
    const result = await runMixed(bench, run)
    violations = result.violations
    sum = addFigures(sum, result.figures)
    const seconds = Math.round((performance.now() - began) / 1_000)
    console.log(`seed ${run.seed}, ${seconds} s: ${describeFigures(result.figures)}\n  so far: ${describeFigures(sum)}`)
  } finally {
    if (violations.length > 0) console.log(violations.slice(0, 10).join('\n'))
    if (violations.length > 0) await abandon(bench, run.seed)
  }
  expect(violations).toEqual([])
}

async function abandon(wrecked: Bench, current: number): Promise<void> {
  bench = null
  const lines = wrecked.tails()
  const folder = await wrecked.close({ keepJournals: true })
  writeFileSync(join(folder, 'processes.log'), lines)
  console.log(`again: npm run test:faults -- --seed ${current}\njournals: ${folder}`)
}
