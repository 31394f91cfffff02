import type { Activity } from '@rivulet/client'
import { expect, test } from 'vitest'
import { seriesOf, totalsOf } from './activity-series.ts'

const row = { completed: 2, failed: 1, canceled: 0, waitMs: 5, slowWaitMs: 9, runMs: 100, slowRunMs: 200 }
const activity: Activity = {
  ...{ from: '2026-01-01T00:00:00.000Z', to: '2026-01-01T00:01:00.000Z', bucketMs: 15_000 },
  queued: [0, 1, 2, 0],
  data: [
    { ...row, at: '2026-01-01T00:00:15.000Z', agent: null },
    { ...row, at: '2026-01-01T00:00:15.000Z', agent: 'echo' },
    { ...row, at: '2026-01-01T00:00:45.000Z', agent: null, completed: 4, failed: 0 },
  ],
}

test('a series has a value for every moment', () => {
  const { at, perMinute, failed, runMs } = seriesOf(activity, null)
  expect(at).toHaveLength(4)
  expect(perMinute).toEqual([0, 12, 0, 16])
  expect(failed).toEqual([0, 1, 0, 0])
  expect(runMs).toEqual([null, 100, null, 100])
})

test('an agent has its own', () => {
  expect(seriesOf(activity, 'echo').perMinute).toEqual([0, 12, 0, 0])
  expect(totalsOf(activity, 'echo')).toEqual({ completed: 2, failed: 1, canceled: 0 })
  expect(totalsOf(activity, null)).toEqual({ completed: 6, failed: 1, canceled: 0 })
})
