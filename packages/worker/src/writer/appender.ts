/**
 * The one way of a worker process to the logs. Appends of all its turns that arrive together are sent together, in one call of the transport. While a call
 * is in flight the next appends are collected, so batches grow with the load, and the append of a turn that runs alone does not wait.
 *
 * When several turns share a call, the next call is sent a few milliseconds after it at the earliest, because a call of fifty appends costs the worker, Redis
 * and every API less than ten calls of five. A busy worker waits longer, so that each turn merges more into an entry, which costs the same whether it holds
 * one word or ten.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append, AppendResult } from '@rivulet/broker'
import { failpoint } from '@rivulet/runtime/failpoint'
import { createBusyWatch } from './busy-watch.ts'

const maxEntriesPerCall = 1_000
const sharingTurns = 5
const distanceMs = 5
const busyDistanceMs = 25

export type Appender<A extends Append = Append> = { append(append: A): Promise<AppendResult> }

type Waiting<A> = { append: A; resolve: (result: AppendResult) => void; reject: (error: unknown) => void }

export type AppenderDeps<A extends Append> = {
  log: { append(appends: readonly A[]): Promise<AppendResult[]> }
  /** Whether this thread has little time left. */
  isBusy?: () => boolean
}

export function createAppender<A extends Append>({ log, isBusy = createBusyWatch() }: AppenderDeps<A>): Appender<A> {
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

  /** A call that is already full gains nothing by waiting. */
  function pauseMs(): number {
    if (last.turns < sharingTurns) return 0
    if (waiting.reduce((size, { append }) => size + sizeOf(append), 0) >= maxEntriesPerCall) return 0
    return Math.ceil(last.sentAt + (isBusy() ? busyDistanceMs : distanceMs) - performance.now())
  }

  function takeBatch(): Waiting<A>[] {
    let size = 0
    const count = waiting.findIndex(({ append }, i) => {
      size += sizeOf(append)
      return i > 0 && size > maxEntriesPerCall
    })
    const batch = count === -1 ? waiting : waiting.slice(0, count)
    waiting = count === -1 ? [] : waiting.slice(count)
    return batch
  }
}

/** In entries. An append without any, which only checks the log, takes room in a call, too. */
function sizeOf({ entries }: Append): number {
  return Math.max(1, entries.length)
}
