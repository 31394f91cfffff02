import { type Cursor, compareCursors, formatCursor } from '@rivulet/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FrameRing } from './frame-ring.ts'
import { Frame, pieceOf } from './sse-frame.ts'

const KiB = 1024

function frame(cursor: Cursor, bytes = 100) {
  return new Frame({ cursor, type: 'custom', index: null, event: null }, pieceOf(Buffer.alloc(bytes)), 0, false)
}

function ringOf(count: number, bytes?: number) {
  const ring = new FrameRing()
  for (let seq = 1; seq <= count; seq += 1) ring.push(frame(`1-${seq}`, bytes))
  return ring
}

const cursorsOf = (frames: readonly { cursor: Cursor }[] | null) => frames?.map(({ cursor }) => cursor) ?? null

describe('the frames after a cursor', () => {
  test('is everything that was pushed after it', () => {
    const ring = ringOf(4)
    expect(cursorsOf(ring.after('1-2'))).toEqual(['1-3', '1-4'])
    expect(cursorsOf(ring.after('0-0'))).toEqual(['1-1', '1-2', '1-3', '1-4'])
    expect(ring.after('1-4')).toEqual([])
    expect(ring.after('9-9')).toEqual([])
  })

  test('is found also where the cursor is between two entries, and across epochs as numbers', () => {
    const ring = new FrameRing()
    for (const cursor of ['9-9', '10-1', '10-10'] as const) ring.push(frame(cursor))
    expect(cursorsOf(ring.after('9-10'))).toEqual(['10-1', '10-10'])
    expect(cursorsOf(ring.after('10-2'))).toEqual(['10-10'])
  })

  test('is unknown once something after it was forgotten, and known at the last that was', () => {
    const ring = ringOf(10, 16 * KiB)
    ring.trim(null, 0)
    expect(ring.length).toBe(4)
    expect(ring.after('1-5')).toBeNull()
    expect(cursorsOf(ring.after('1-6'))).toEqual(['1-7', '1-8', '1-9', '1-10'])
  })
})

describe('an entry', () => {
  test('is held if it is this very one', () => {
    const ring = ringOf(3)
    expect(ring.holds('1-2')).toBe(true)
    for (const cursor of ['0-0', '1-4', '2-1'] as const) expect(ring.holds(cursor)).toBe(false)
  })

  test('that was forgotten is not held', () => {
    const ring = ringOf(10, 16 * KiB)
    ring.trim(null, 0)
    expect(ring.holds('1-6')).toBe(false)
    expect(ring.holds('1-7')).toBe(true)
  })
})

describe('trimming', () => {
  test('keeps frames that a viewer still needs, up to a limit', () => {
    const ring = ringOf(20, 16 * KiB)
    ring.trim('1-2', 1024 * KiB)
    expect(cursorsOf(ring.after('1-2'))).toHaveLength(18)
    ring.trim('1-2', 160 * KiB)
    expect(ring.after('1-2')).toBeNull()
    expect(ring.length).toBe(10)
  })

  test('is due only when there is much to drop', () => {
    const ring = ringOf(650)
    expect(ring.isOverfull()).toBe(false)
    for (let seq = 651; !ring.isOverfull(); seq += 1) ring.push(frame(`1-${seq}`))
    ring.trim(null, 0)
    expect(ring.length).toBe(655)
    expect(ring.isOverfull()).toBe(false)
  })

  test('keeps a little for viewers that reconnect, needed or not', () => {
    const ring = ringOf(600)
    ring.trim(null, 0)
    expect(ring.length).toBe(600)
  })

  test('keeps the same promises in any order of pushing and trimming', () => {
    const steps = fc.array(
      fc.record({ bytes: fc.integer({ min: 1, max: 40 * KiB }), trims: fc.boolean(), need: fc.nat(60), limit: fc.nat(200 * KiB) }),
    )
    fc.assert(
      fc.property(steps, all => {
        const ring = new FrameRing()
        const pushed: Cursor[] = []
        for (const { bytes, trims, need, limit } of all) {
          const cursor = formatCursor(1, pushed.length + 1)
          pushed.push(cursor)
          ring.push(frame(cursor, bytes))
          if (trims) ring.trim(need < pushed.length ? formatCursor(1, need) : null, limit)
          for (const from of ['0-0' as const, ...pushed]) {
            const found = ring.after(from)
            // All of it, or nothing: never a part.
            if (found) expect(cursorsOf(found)).toEqual(pushed.filter(known => compareCursors(known, from) > 0))
          }
          const held = ring.after(formatCursor(1, pushed.length - ring.length))
          expect(held).toHaveLength(ring.length)
          if (trims) expect(sum(held ?? [])).toBeLessThanOrEqual(Math.max(64 * KiB, limit) + 40 * KiB)
        }
      }),
    )
  })
})

function sum(frames: readonly { bytes: Buffer }[]): number {
  return frames.reduce((bytes, each) => bytes + each.bytes.length, 0)
}
