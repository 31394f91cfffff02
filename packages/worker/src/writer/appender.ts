/**
 * The one way of a worker process to the logs. Appends of all its turns that arrive together are sent together, in one call of the transport. While a call
 * is in flight the next appends are collected, so batches grow with the load and a lone append does not wait.
 *
 * When several turns share a call, the next one keeps a distance, because a call of fifty appends costs the worker, Redis and every API less than ten of five.
 * A worker that is busy keeps a longer one, so that each turn merges more into an entry, which costs the same whether it holds one word or ten.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append, AppendResult } from '@rivulet/broker'
import { failpoint } from '@rivulet/runtime/failpoint'

const maxEntriesPerCall = 1_000
const sharingTurns = 5
const distanceMs = 5
const busyDistanceMs = 25
/** Of the time of its thread. */
const busyShare = 0.7
const busyWindowMs = 100

export type Appender<A extends Append = Append> = { append(append: A): Promise<AppendResult> }

type Waiting<A> = { append: A; resolve: (result: AppendResult) => void; reject: (error: unknown) => void }

/** @param isBusy whether this thread has little time left */
export function createAppender<A extends Append>(
  log: { append(appends: readonly A[]): Promise<AppendResult[]> },
  isBusy = watchEventLoop(),
): Appender<A> {
  let waiting: Waiting<A>[] = []
  let isSending = false
  let last = { sentAt: Number.NEGATIVE_INFINITY, turns: 0 }
  return { append }

  function append(wanted: A): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      waiting.push({ append: wanted, resolve, reject })
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
    }
    isSending = false
  }

  /** A full call gains nothing by waiting. */
  function pauseMs(): number {
    const entries = waiting.reduce((sum, { append }) => sum + append.entries.length, 0)
    if (last.turns < sharingTurns || entries >= maxEntriesPerCall) return 0
    return Math.ceil(last.sentAt + (isBusy() ? busyDistanceMs : distanceMs) - performance.now())
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

/** By the last window that is complete. A thread that waits for its core counts as busy, too. */
function watchEventLoop(): () => boolean {
  let from = performance.eventLoopUtilization()
  let share = 0
  return () => {
    const { active, idle, utilization } = performance.eventLoopUtilization(from)
    if (active + idle >= busyWindowMs) {
      share = utilization
      from = performance.eventLoopUtilization()
    }
    return share > busyShare
  }
}
