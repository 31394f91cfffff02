/**
 * The seeds of a test that plays at random on a platform: one in every run, and as many as it gets here in `npm run test:slow`, which sets
 * RIVULET_TEST_SEEDS=all. Another seed is another order of the same events, and each is as expensive as the first.
 */
export function seedsUpTo(count: number): number[] {
  const all = Array.from({ length: count }, (_, i) => i + 1)
  return process.env.RIVULET_TEST_SEEDS === 'all' ? all : all.slice(0, 1)
}
