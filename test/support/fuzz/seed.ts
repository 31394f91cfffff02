/** What makes a run of the fuzzers: the same seed sends the same. `RIVULET_FUZZ_SEED=7 npm run test:slow` sends something else. */
import fc from 'fast-check'

export const fuzzSeed = Number(process.env.RIVULET_FUZZ_SEED ?? 1)

export function sampled<T>(arbitrary: fc.Arbitrary<T>, count: number): T[] {
  return fc.sample(arbitrary, { seed: fuzzSeed, numRuns: count })
}
