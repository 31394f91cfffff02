/**
 * The newest frames of a feed, for a viewer that reconnects soon or whose socket was full. Older frames are dropped beyond a number of bytes.
 *
 * A class, because every delta passes here: with closures each task has its own object for each method, and a call of it misses the cache.
 */
import { type Cursor, compareCursors } from '@rivulet/protocol'
import { Slab } from './slab.ts'
import type { Frame } from './sse-frame.ts'

/** Frames are dropped many at a time, because the oldest ones are no longer in the caches of the processor. */
const trimmedBytes = 16 * 1024

export class FrameRing {
  /** Where its frames are encoded. */
  readonly slab = new Slab()
  readonly #keptBytes: number
  #frames: Frame[] = []
  /** Where in `#frames` the ring begins; those before are forgotten. */
  #start = 0
  #bytes = 0
  /** The last cursor that was forgotten: the ring holds everything after it. */
  #forgotten: Cursor | null = null

  /** @param keptBytes kept in any case, for viewers that reconnect */
  constructor(keptBytes = 64 * 1024) {
    this.#keptBytes = keptBytes
  }

  get length(): number {
    return this.#frames.length - this.#start
  }

  get newest(): Frame | null {
    return this.#frames.at(-1) ?? null
  }

  push(frame: Frame): void {
    this.#frames.push(frame)
    this.#bytes += frame.to - frame.from
  }

  /** Whether there is enough to drop. */
  isOverfull(): boolean {
    return this.#bytes > this.#keptBytes + trimmedBytes
  }

  /** Drops frames that no viewer needs: all older than `cursor`, and all above `maxBytes` even if a viewer needs them. */
  trim(cursor: Cursor | null, maxBytes: number): void {
    while (this.#start < this.#frames.length && this.#bytes > this.#keptBytes) {
      const oldest = this.#frames[this.#start]
      if (!oldest || (this.#bytes <= maxBytes && cursor && compareCursors(oldest.cursor, cursor) > 0)) break
      this.#forgotten = oldest.cursor
      this.#bytes -= oldest.to - oldest.from
      this.#start += 1
    }
    // Now and then, or forgotten frames would stay in memory; not each time, because the rest is copied.
    if (this.#start > this.#frames.length / 2) {
      this.#frames = this.#frames.slice(this.#start)
      this.#start = 0
    }
  }

  /** Whether the ring holds everything after a position that the feed has had. */
  reaches(cursor: Cursor): boolean {
    return !this.#forgotten || compareCursors(cursor, this.#forgotten) >= 0
  }

  /** Whether this very entry is in the ring. */
  holds(cursor: Cursor): boolean {
    const found = this.#findAfter(cursor)
    return found > this.#start && this.#frames[found - 1]?.cursor === cursor
  }

  /** The frames after a position that the feed has had, or null when the ring does not reach back to it. */
  after(cursor: Cursor): readonly Frame[] | null {
    return this.reaches(cursor) ? this.#frames.slice(this.#findAfter(cursor)) : null
  }

  /** The first position whose cursor is greater. */
  #findAfter(cursor: Cursor): number {
    let low = this.#start
    let high = this.#frames.length
    while (low < high) {
      const middle = (low + high) >> 1
      const frame = this.#frames[middle]
      if (frame && compareCursors(frame.cursor, cursor) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
