/**
 * The one road of a worker process to the logs. Appends of all its turns that come together leave together, in one script call for each shard
 * of a cluster, or in one altogether. While a call is on its way the next ones gather, so batches grow with the load and nothing waits when
 * there is none. Where many turns wait, they are given a moment to say more: an entry costs Redis and every API the same, whether it holds one
 * word or ten.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append, AppendAnswer, LogWriter } from '@rivulet/broker'

const maxEntriesPerCall = 1_000
/** Turns that wait at the same time only where Redis or this process has more to do than it can. */
const crowd = 64
const gatherMs = 10

export type Appender = { append(append: Append): Promise<AppendAnswer> }

type Waiting = { append: Append; resolve: (answer: AppendAnswer) => void; reject: (error: unknown) => void }

export function createAppender(log: LogWriter): Appender {
  let waiting: Waiting[] = []
  let isSending = false
  return { append }

  function append(wanted: Append): Promise<AppendAnswer> {
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
      if (waiting.length >= crowd) await sleep(gatherMs)
      const batch = takeBatch()
      try {
        // failpoint: appending
        const answers = await log.append(batch.map(({ append }) => append))
        // failpoint: appended (batch.map(({ append }) => append), answers)
        for (const [i, { resolve }] of batch.entries()) resolve(answers[i] ?? 'gap')
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isSending = false
  }

  function takeBatch(): Waiting[] {
    let entries = 0
    const count = waiting.findIndex(({ append }, i) => {
      entries += append.entries.length
      return i > 0 && entries > maxEntriesPerCall
    })
    const batch = count === -1 ? waiting : waiting.slice(0, count)
    waiting = count === -1 ? [] : waiting.slice(count)
    return batch
  }
}
