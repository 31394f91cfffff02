/**
 * One cursor stands for one content: whichever of two hubs a viewer asks, and whatever was lost meanwhile, the content at a cursor is the same for
 * every viewer. A failing run prints its seed.
 */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { twoContentsIn } from '../../../../test/support/judge/one-content.ts'
import { playTask } from '../../test/hub-play.ts'
import { createMetrics } from '../telemetry/metrics.ts'

const metrics = createMetrics()
afterAll(() => metrics.registry.clear())

/** RIVULET_LAW_RUNS=10000 looks longer. */
const runs = Number(process.env.RIVULET_LAW_RUNS ?? 75)

test.each([false, true])('the content at any cursor is the same from both hubs, for every viewer (logs are lost: %s)', async isLossy => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async seed => {
      const { viewers } = await playTask(metrics, seed, { isLossy })
      expect(twoContentsIn(viewers.map(({ journal }) => journal))).toEqual([])
    }),
    { numRuns: runs },
  )
})
