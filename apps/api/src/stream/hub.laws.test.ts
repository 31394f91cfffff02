/**
 * Whatever order things happen in, every viewer ends with what is stored, and was sent a snapshot for every gap: a real hub over a made-up Redis and
 * Postgres (`hub-play.ts`). A failing run prints its seed.
 */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { faultsIn, foldJournal } from '../../../../test/support/judge/judge.ts'
import { type Disturbance, playTask } from '../../test/hub-play.ts'
import { createMetrics } from '../telemetry/metrics.ts'

const metrics = createMetrics()
afterAll(() => metrics.registry.clear())

/** RIVULET_LAW_RUNS=10000 looks longer. */
const runs = Number(process.env.RIVULET_LAW_RUNS ?? 75)

test.each<[string, Disturbance]>([
  ['pushes are lost, doubled, delayed and swapped', { isLossy: false }],
  ['logs lose their ends as well, or all of themselves', { isLossy: true }],
])('viewers that join, are cut, reconnect and fall behind at any moment end with what is stored, while %s', async (_, disturbance) => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async seed => {
      expect(await faultsOf(seed, disturbance)).toEqual([])
    }),
    // Found: a viewer from the start of an emptied log that was sent its end without a snapshot; a feed that stood before the lost end of a log.
    { numRuns: runs, examples: [[539262955], [884514119]] },
  )
})

async function faultsOf(seed: number, disturbance: Disturbance): Promise<string[]> {
  const { viewers, messages } = await playTask(metrics, seed, disturbance)
  return viewers.flatMap(({ journal, isDone }) => {
    // Some had received the end before the next input came.
    const last = foldJournal(journal).state.turns.at(-1)?.number ?? 0
    const rows = messages.filter(({ turn: turnNumber }) => turnNumber <= last)
    return [...(isDone ? [] : ['a viewer never came to an end']), ...faultsIn(journal, { rows, isDisturbed: disturbance.isLossy })]
  })
}
