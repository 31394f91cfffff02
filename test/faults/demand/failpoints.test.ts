/**
 * Every failpoint there is, with everything that can happen there: the story reaches its end, and no promise is broken. A failpoint before an
 * action that throws means that it was not done, one behind it that it was, and its caller does not know.
 */
import { failpoints } from '@rivulet/runtime/failpoint'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bench, startBench } from '../bench.ts'
import { ofJoins, tellThrough } from '../crash-point.ts'
import { cancel, notOnTheWay } from '../disturbances.ts'

/** Longer than a lease, and shorter. */
const kinds = ['kill', 'throw', 'stall:4000', 'delay:1000']

let bench: Bench

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 0, env: { WEBHOOK_ALLOW_PRIVATE: 'on' } })
})
afterAll(() => bench.close())

describe.each(failpoints.filter(name => !ofJoins.has(name)))('at "%s"', failpoint => {
  test.each(kinds)('%s', { timeout: 180_000 }, async kind => {
    const { history } = await tellThrough(bench, [`${failpoint}=${kind}`], notOnTheWay[failpoint])
    const [turn] = history.stored[0]?.detail.turns ?? []
    if (notOnTheWay[failpoint] !== cancel) expect(turn?.status).toBe('completed')
    // No process was stopped for as long as a lease.
    if (kind.startsWith('delay')) expect(turn?.attempt).toBe(1)
  })
})
