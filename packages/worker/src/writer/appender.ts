/**
 * The one way of a worker process to the logs. Appends of all its turns that arrive together are sent together, in one call of the transport. While a call
 * is in flight the next appends are collected, so batches grow with the load and a lone append does not wait.
 *
 * When several turns share a call, the next one keeps a distance, because a call of fifty appends costs the worker, Redis and every API less than ten of five.
 * When many turns append faster than Redis takes it, the distance is longer, so that each turn merges more into one entry, because an entry costs the same
 * whether it holds one word or ten.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append, AppendResult } from '@rivulet/broker'
import { failpoint } from '@rivulet/runtime/failpoint'

const maxEntriesPerCall = 1_000
const sharingTurns = 5
const distanceMs = 5
const crowdTurns = 64
const crowdDistanceMs = 10

export type Appender<A extends Append = Append> = {
  /** `said` is how many events were merged into its entries. */
  append(append: A, said: number): Promise<AppendResult>
}

type Waiting<A> = { append: A; said: number; resolve: (result: AppendResult) => void; reject: (error: unknown) => void }

export function createAppender<A extends Append>(log: { append(appends: readonly A[]): Promise<AppendResult[]> }): Appender<A> {
  let waiting: Waiting<A>[] = []
  let isSending = false
  let last = { sentAt: Number.NEGATIVE_INFINITY, turns: 0 }
  let repliedAt = Number.NEGATIVE_INFINITY
  return { append }

  function append(wanted: A, said: number): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      waiting.push({ append: wanted, said, resolve, reject })
      if (!isSending) void send()
    })
  }

  async function send(): Promise<void> {
    isSending = true
    // Turns that speak in the same tick share the call.
    await null
    while (waiting.length > 0) {
      const pause = pauseMs()
      if (pause > 0) await sleep(pause)
      const batch = takeBatch()
      last = { sentAt: performance.now(), turns: batch.length }
      try {
        if (failpoint) await failpoint('appending')
        const results = await log.append(batch.map(({ append }) => append))
        if (failpoint) await failpoint('appended', batch, results)
        for (const [i, { resolve }] of batch.entries()) resolve(results[i] ?? 'gap')
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      repliedAt = performance.now()
    }
    isSending = false
  }

  /** A full call gains nothing by waiting. */
  function pauseMs(): number {
    const entries = waiting.reduce((sum, { append }) => sum + append.entries.length, 0)
    if (entries >= maxEntriesPerCall) return 0
    if (isCrowded(entries)) return crowdDistanceMs
    return last.turns < sharingTurns ? 0 : Math.ceil(last.sentAt + distanceMs - performance.now())
  }

  /** If two or more deltas already share an entry. After a pause no turn has more to send. */
  function isCrowded(entries: number): boolean {
    if (waiting.length < crowdTurns || performance.now() - repliedAt > crowdDistanceMs) return false
    return waiting.reduce((sum, { said }) => sum + said, 0) >= entries * 2
  }

  function takeBatch(): Waiting<A>[] {
    let entries = 0
    const count = waiting.findIndex(({ append }, i) => {
      entries += Math.max(1, append.entries.length)
      return i > 0 && entries > maxEntriesPerCall
    })
    const batch = count === -1 ? waiting : waiting.slice(0, count)
    waiting = count === -1 ? [] : waiting.slice(count)
    return batch
  }
}
