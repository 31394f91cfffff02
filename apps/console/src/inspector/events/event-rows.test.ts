import { describe, expect, test } from 'vitest'
import { appendEvents, emptyLog } from '../event-log.ts'
import { sampleEvents } from '../sample-events.ts'
import { growRows, rowWith } from './event-rows.ts'

const log = appendEvents(emptyLog, sampleEvents)
const types = (rows: ReturnType<typeof growRows>) => rows.rows.map(({ entry, count }) => `${entry.event.type} ${count}`)

describe('the rows of the event list', () => {
  test('fold neighbouring deltas of a message, and add up their sizes', () => {
    const folded = growRows(null, log, 'all', true)
    expect(types(folded)).toContain('message.delta 2')
    expect(folded.rows.reduce((sum, { count }) => sum + count, 0)).toBe(sampleEvents.length)
    expect(folded.rows.reduce((sum, { size }) => sum + size, 0)).toBe(log.bytes)
    expect(growRows(null, log, 'all', false).rows).toHaveLength(sampleEvents.length)
  })

  test('are the same, whether the log came at once or piece by piece', () => {
    let grown: ReturnType<typeof growRows> | null = null
    let part = emptyLog
    for (const event of sampleEvents) {
      part = appendEvents(part, [event])
      grown = growRows(grown, part, 'messages', true)
    }
    expect(grown?.rows.map(({ number, count }) => [number, count])).toEqual(
      growRows(null, log, 'messages', true).rows.map(({ number, count }) => [number, count]),
    )
  })

  test('are those that the filter lets through', () => {
    expect(types(growRows(null, log, 'turns', true))).toEqual(['turn.queued 1', 'turn.started 1', 'turn.started 1', 'turn.finished 1'])
    expect(types(growRows(null, log, 'tools', true))).toEqual([])
  })

  test('are found by each event that they hold', () => {
    const { rows } = growRows(null, log, 'all', true)
    expect(log.entries.map(({ number }) => rowWith(rows, number))).toEqual([0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9])
    expect(rowWith(growRows(null, log, 'turns', true).rows, 3)).toBe(-1)
  })
})
