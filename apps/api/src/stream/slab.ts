/**
 * Room for the frames of one ring, one after the other in buffers of its own. A buffer is in memory as long as one of its frames is: in a pool that all tasks
 * share, the few frames of a slow task would keep those of many others.
 */

/** A larger frame gets a buffer of its own, because the last buffer of a slab stays when its frames are gone. */
export const largestInSlab = 4 * 1024
const firstBytes = 1024
const mostBytes = 16 * 1024

export class Slab {
  source = Buffer.alloc(0)
  #end = 0

  /** Returns where so many bytes begin in `source`, which may be another buffer afterwards. */
  take(bytes: number): number {
    if (this.#end + bytes > this.source.length) {
      this.source = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(2 * this.source.length || firstBytes, mostBytes)))
      this.#end = 0
    }
    const from = this.#end
    this.#end += bytes
    return from
  }
}
