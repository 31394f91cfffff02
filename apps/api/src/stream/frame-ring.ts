/** The newest frames of a feed, for a viewer that reconnects soon or whose socket was full. Older frames are dropped beyond a number of bytes. */
import { type Cursor, compareCursors } from '@rivulet/protocol'
import type { Frame } from './sse-frame.ts'

export type FrameRing = {
  push(frame: Frame): void
  /** Drops frames that no viewer needs: all older than `cursor`, and all above `maxBytes` even if a viewer needs them. */
  trim(cursor: Cursor | null, maxBytes: number): void
  /** Whether the ring holds everything after a position that the feed has had. */
  reaches(cursor: Cursor): boolean
  /** Whether this very entry is in the ring. */
  holds(cursor: Cursor): boolean
  /** The frames after a position that the feed has had, or null when the ring does not reach back to it. */
  after(cursor: Cursor): readonly Frame[] | null
  readonly length: number
}

/** @param keptBytes kept in any case, for viewers that reconnect */
export function createFrameRing(keptBytes = 64 * 1024): FrameRing {
  let frames: Frame[] = []
  /** Where in `frames` the ring begins; those before are forgotten. */
  let start = 0
  let bytes = 0
  /** The last cursor that was forgotten: the ring holds everything after it. */
  let forgotten: Cursor | null = null

  return {
    push(frame) {
      frames.push(frame)
      bytes += frame.to - frame.from
    },
    trim,
    reaches,
    holds,
    after,
    get length() {
      return frames.length - start
    },
  }

  function trim(cursor: Cursor | null, maxBytes: number): void {
    while (start < frames.length && bytes > keptBytes) {
      const oldest = frames[start]
      if (!oldest || (bytes <= maxBytes && cursor && compareCursors(oldest.cursor, cursor) > 0)) break
      forgotten = oldest.cursor
      bytes -= oldest.to - oldest.from
      start += 1
    }
    // Now and then, or forgotten frames would stay in memory; not each time, because the rest is copied.
    if (start > frames.length / 2) {
      frames = frames.slice(start)
      start = 0
    }
  }

  function reaches(cursor: Cursor): boolean {
    return !forgotten || compareCursors(cursor, forgotten) >= 0
  }

  function holds(cursor: Cursor): boolean {
    const found = findAfter(cursor)
    return found > start && frames[found - 1]?.cursor === cursor
  }

  function after(cursor: Cursor): readonly Frame[] | null {
    if (!reaches(cursor)) return null
    const found = findAfter(cursor)
    return found === frames.length ? [] : frames.slice(found)
  }

  /** The first position whose cursor is greater. */
  function findAfter(cursor: Cursor): number {
    let low = start
    let high = frames.length
    // Nearly every viewer has everything but the newest.
    if (high - low > 1 && frames[high - 2]?.cursor === cursor) return high - 1
    while (low < high) {
      const middle = (low + high) >> 1
      const frame = frames[middle]
      if (frame && compareCursors(frame.cursor, cursor) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
