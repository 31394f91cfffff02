/**
 * An immutable list: a change returns a new list that shares nearly all of the old one. It is stored in chunks, so that a change at the end of
 * a task with thousands of messages copies a few dozen pointers instead of all of them.
 */
const chunkSize = 64

export class PersistentList<T> implements Iterable<T> {
  readonly length: number
  readonly #chunks: readonly (readonly T[])[]

  private constructor(chunks: readonly (readonly T[])[], length: number) {
    this.#chunks = chunks
    this.length = length
  }

  static from<T>(items: readonly T[]): PersistentList<T> {
    const chunks: T[][] = []
    for (let at = 0; at < items.length; at += chunkSize) chunks.push(items.slice(at, at + chunkSize))
    return new PersistentList(chunks, items.length)
  }

  get(position: number): T | undefined {
    return this.#chunks[Math.floor(position / chunkSize)]?.[position % chunkSize]
  }

  /** Replaces an existing item, or adds one at the end. */
  set(position: number, item: T): PersistentList<T> {
    if (position < 0 || position > this.length) throw new RangeError(`No position ${position} of ${this.length}`)
    const chunks = this.#chunks.slice()
    const chunk = chunks[Math.floor(position / chunkSize)]?.slice() ?? []
    chunk[position % chunkSize] = item
    chunks[Math.floor(position / chunkSize)] = chunk
    return new PersistentList(chunks, Math.max(this.length, position + 1))
  }

  truncate(length: number): PersistentList<T> {
    if (length >= this.length) return this
    const chunks = this.#chunks.slice(0, Math.ceil(length / chunkSize))
    const last = chunks.pop()
    if (last) chunks.push(last.slice(0, length - chunks.length * chunkSize))
    return new PersistentList(chunks, length)
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const chunk of this.#chunks) yield* chunk
  }
}
