/**
 * Notices when Postgres' clock was set, by its distance from the monotonic clock of this process. A reading lies between the moments when Postgres was asked
 * and when it replied, so a slow reply is no jump.
 */
export class PostgresClock {
  readonly #readMs: () => Promise<number>
  readonly #toleranceMs: number
  /** Between these, Postgres' clock was ahead of ours. */
  #ahead: { least: number; most: number } | null = null

  constructor(readMs: () => Promise<number>, toleranceMs: number) {
    this.#readMs = readMs
    this.#toleranceMs = toleranceMs
  }

  /** Whether the clock was set since the last call. */
  async hasJumped(): Promise<boolean> {
    const askedAt = performance.now()
    const nowMs = await this.#readMs()
    const before = this.#ahead
    const [least, most] = [nowMs - performance.now(), nowMs - askedAt]
    this.#ahead = { least, most }
    return before !== null && (least - before.most > this.#toleranceMs || before.least - most > this.#toleranceMs)
  }
}
