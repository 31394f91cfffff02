import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Cursor, compareCursors, epochOf, formatCursor, origin, parseCursor, seqOf } from './cursor.ts'

describe('order', () => {
  test.each([
    ['10-1', '9-2'],
    ['2-10', '2-9'],
    ['1-1', origin],
    ['100-0', '99-999999999999999'],
    ['3-100', '3-99'],
  ] as [Cursor, Cursor][])('%s comes after %s: both halves are numbers', (later, earlier) => {
    expect(compareCursors(later, earlier)).toBeGreaterThan(0)
    expect(compareCursors(earlier, later)).toBeLessThan(0)
  })

  test('a cursor is not before itself', () => {
    expect(compareCursors('4-2', '4-2')).toBe(0)
  })

  test('cursors have the order of their pairs of numbers', () => {
    const half = fc.oneof(fc.nat(120), fc.integer({ min: 0, max: 999_999_999_999_999 }))
    fc.assert(
      fc.property(half, half, half, half, (epoch, seq, otherEpoch, otherSeq) => {
        const order = compareCursors(formatCursor(epoch, seq), formatCursor(otherEpoch, otherSeq))
        expect(Math.sign(order)).toBe(Math.sign(epoch - otherEpoch || seq - otherSeq))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('parsing', () => {
  test.each(['0-0', '1-1', '12-345', '999999999999999-999999999999999'])('%s is a cursor', text => {
    expect(parseCursor(text)).toBe(text)
  })

  test('parsing removes leading zeros', () => {
    expect(parseCursor('007-01')).toBe('7-1')
  })

  test.each([
    '',
    '1',
    '1-',
    '-1',
    '-',
    '1-1-1',
    ' 1-1',
    '1-1 ',
    '1-1\n',
    '1-1, 9-9',
    '1 -1',
    '+1-1',
    '1.0-1',
    '1e3-1',
    '0x1-1',
    '$',
    '*',
    '1-*',
    '1234567890123456-1',
    '1-1234567890123456',
    '١-١',
    '１-１',
    '1–1',
  ])('%j is not a cursor', text => {
    expect(parseCursor(text)).toBeNull()
  })

  test('a formatted cursor is parsed to the same numbers', () => {
    const cursor = parseCursor(formatCursor(12, 34)) ?? origin
    expect([epochOf(cursor), seqOf(cursor)]).toEqual([12, 34])
  })
})
