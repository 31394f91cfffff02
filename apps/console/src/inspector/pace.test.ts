import { expect, test } from 'vitest'
import { appendEvents, emptyLog } from './event-log.ts'
import { paceOf } from './pace.ts'
import { sampleEvents } from './sample-events.ts'

const { entries } = appendEvents(emptyLog, sampleEvents)

test('the pace is deltas over time, and how long each attempt took to its first', () => {
  const { bucketMs, deltas, firstDeltas } = paceOf(entries)
  expect(bucketMs).toBe(100)
  expect(deltas).toEqual([3, 0])
  expect(firstDeltas).toEqual([
    { turnNumber: 1, attempt: 1, ms: 20 },
    { turnNumber: 1, attempt: 2, ms: 20 },
  ])
})

test('nothing has no pace', () => {
  expect(paceOf([])).toMatchObject({ deltas: [], firstDeltas: [] })
})
