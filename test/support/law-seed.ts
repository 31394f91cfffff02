/**
 * The seed of every property (vitest's setupFiles): the same in each run, so that a red run is about the change and not about luck.
 * RIVULET_LAW_SEED=random looks elsewhere; a property that fails prints the seed it had.
 */
import fc from 'fast-check'

const seed = process.env.RIVULET_LAW_SEED ?? '2026'
if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })
