/** What makes a run of the fuzzers: the same seed sends the same. `RIVULET_FUZZ_SEED=7 npm run test:slow` sends something else. */
import fc from 'fast-check'

export const fuzzSeed = Number(process.env.RIVULET_FUZZ_SEED ?? 1)

export function sampled<T>(arbitrary: fc.Arbitrary<T>, count: number, seed = fuzzSeed): T[] {
  return fc.sample(arbitrary, { seed, numRuns: count })
}

/** About as many of each arbitrary, and at least one, in turns: so none is left out. */
export function sampledInTurns<T>(arbitraries: readonly fc.Arbitrary<T>[], count: number): T[] {
  const each = Math.ceil(count / arbitraries.length)
  const samples = arbitraries.map((arbitrary, i) => sampled(arbitrary, each, fuzzSeed + i))
  return Array.from({ length: each }, (_, round) => samples.flatMap(sample => sample.slice(round, round + 1))).flat()
}
