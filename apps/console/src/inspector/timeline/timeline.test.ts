import type { FoldedTurn, Message } from '@rivulet/client'
import { describe, expect, test } from 'vitest'
import { appendEvents, emptyLog } from '../event-log.ts'
import { sampleEvents } from '../sample-events.ts'
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

describe('the timeline of a log that has expired', () => {
  const at = (ms: number) => new Date(ms).toISOString()
  const turns = [
    { number: 1, status: 'failed', attempt: 2, queuedAt: at(500), startedAt: at(600), finishedAt: at(900) },
    { number: 2, status: 'queued', attempt: 0, queuedAt: at(950) },
  ] as FoldedTurn[]
  const messages = [
    { index: 0, turn: 1, author: 'user', status: 'complete', content: { type: 'text' }, createdAt: at(600) },
    { index: 1, turn: 1, author: 'agent', status: 'failed', content: { type: 'text' }, createdAt: at(650), finishedAt: at(890) },
  ] as Message[]

  test('has the turns and messages by their stored times', () => {
    const { from, to, bars, stored } = timelineOf([], { turns, messages })
    expect([from, to, stored]).toEqual([500, 950, 2])
    expect(bars.map(({ kind, label, from, to, outcome, message }) => [kind, label, from, to, outcome, message])).toEqual([
      ['turn', 'turn 1', 500, 900, 'bad', 0],
      ['attempt', 'attempt 2', 600, 900, 'bad', 1],
      ['message', '1 text', 650, 890, 'bad', 1],
      ['turn', 'turn 2', 950, null, 'open', null],
    ])
  })

  test('has the steps by their times, which lead to what was said in them', () => {
    const steps = [
      { turn: 1, name: 'plan', finishedAt: at(620) },
      { turn: 1, name: 'write', startedAt: at(640), finishedAt: at(700) },
    ]
    const { bars } = timelineOf([], { turns, messages, steps })
    expect(bars.map(({ kind, label, from, to, message }) => [kind, label, from, to, message]).slice(2, 5)).toEqual([
      ['step', 'plan', 620, 620, null],
      ['step', 'write', 640, 700, 1],
      ['message', '1 text', 650, 890, 1],
    ])
    expect(timelineOf(entries, { turns: [], messages: [], steps: [{ turn: 1, name: 'a', finishedAt: at(1_015) }] }).bars[2]?.label).toBe(
      'a',
    )
  })

  test('takes a turn from the log if it is there', () => {
    const { bars, stored } = timelineOf(entries, { turns, messages })
    expect(stored).toBe(1)
    expect(bars.filter(({ label }) => label === 'turn 1').map(({ cursor }) => cursor)).toEqual(['1-1'])
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
  expect(timelineOf([])).toEqual({ from: 0, to: 0, bars: [], stored: 0 })
})
