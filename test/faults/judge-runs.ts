/** Runs of a nemesis on one bench, each judged; after a violation, the next run gets a new bench, and the journals of the old one stay. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Bench } from './bench.ts'
import { addFigures, describeFigures, type Figures } from './checker/figures.ts'
import { type MixedRun, runMixed } from './mixed-run.ts'

/** `again`: the command line that repeats the run of a seed. */
export function createJudge(start: () => Promise<Bench>, again: (seed: number) => string) {
  let bench: Bench | null = null
  let sum: Figures | null = null
  return { judge, close: async () => void (await bench?.close()) }

  async function judge(run: MixedRun): Promise<void> {
    bench ??= await start()
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

  async function abandon(wrecked: Bench, seed: number): Promise<void> {
    bench = null
    const lines = wrecked.tails()
    const folder = await wrecked.close({ keepJournals: true })
    writeFileSync(join(folder, 'processes.log'), lines)
    const transport = process.env.RIVULET_TRANSPORT === 'http' ? ' --transport http' : ''
    console.log(`again: ${again(seed)}${transport}\njournals: ${folder}`)
  }
}
