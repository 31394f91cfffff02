/**
 * The checker is worth something only if it goes red: with a rule of ours switched off, what it is there for is found; with all of them in place,
 * the same things happen and nothing is.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Bench, type BenchOptions, startBench } from '../bench.ts'
import { violationsIn } from '../checker/checker.ts'
import { mutations } from '../mutations.ts'

test('with every rule in place, no promise is broken', { timeout: 180_000 }, async () => {
  const bench = await startBenchOfTest({ apis: 1, workers: 2 })
  // With the loss last: logs prove more than what is left of them.
  for (const group of [mutations.filter(isLossless), mutations.filter(mutation => !isLossless(mutation))]) {
    for (const { happen } of group) await happen(bench)
    expect(violationsIn(await bench.rest())).toEqual([])
  }
})

describe('without', () => {
  test.each(mutations.map(mutation => [mutation.name, mutation] as const))(
    '%s',
    { timeout: 180_000 },
    async (_, { changes, workers = 1, happen }) => {
      const bench = await startBenchOfTest({ apis: 1, workers, changes })
      await happen(bench)
      expect(violationsIn(await bench.rest())).not.toEqual([])
    },
  )
})

function isLossless({ name }: { name: string }): boolean {
  return !name.startsWith('the gap check')
}

async function startBenchOfTest(options: BenchOptions): Promise<Bench> {
  const bench = await startBench(options)
  onTestFinished(() => bench.close().then(() => {}))
  return bench
}
