import { describe, expect, test } from 'vitest'
import { appendEvents, emptyLog } from './event-log.ts'
import { sampleEvents } from './sample-events.ts'
import { paceOf, timelineOf } from './timeline.ts'

const { entries } = appendEvents(emptyLog, sampleEvents)

describe('the timeline', () => {
  test('has a bar for each turn, attempt and message, with how it ended', () => {
    const { from, to, bars } = timelineOf(entries)
    expect([from, to]).toEqual([1_000, 1_100])
    expect(bars.map(({ kind, label, from, to, outcome }) => [kind, label, from, to, outcome])).toEqual([
      ['turn', 'turn 1', 1_000, 1_100, 'good'],
      ['attempt', 'attempt 1', 1_010, 1_060, 'bad'],
      ['message', '0 text', 1_020, 1_050, 'bad'],
      ['attempt', 'attempt 2', 1_060, 1_100, 'good'],
      ['message', '0 text', 1_070, 1_090, 'good'],
    ])
  })

  test('leaves open what goes on', () => {
    expect(timelineOf(entries.slice(0, 4)).bars.map(({ to, outcome }) => [to, outcome])).toEqual(Array(3).fill([null, 'open']))
  })
})

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
  expect(timelineOf([])).toEqual({ from: 0, to: 0, bars: [] })
})
