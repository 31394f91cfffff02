/**
 * Appends one batch until the log has acknowledged it. Every try has the same numbers and the same entries, so a lost reply cannot write anything
 * twice. A Redis that is out of memory is waited for, but not longer than `backpressureMs` in one stretch.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append, AppendResult } from '@rivulet/broker'
import { backoffMs, RivuletError } from '@rivulet/protocol'
import type { Appender } from './appender.ts'

type PatientAppend = {
  appender: Appender
  backpressureMs: number
  /** Whether nothing may be sent any more. */
  isStopped: () => boolean
}

/** @returns the log's outcome, `stopped`, or the error of a Redis that stayed out of memory or of a server that refuses the append */
export async function appendPatiently(
  append: Append,
  { appender, backpressureMs, isStopped }: PatientAppend,
): Promise<AppendResult | 'stopped' | RivuletError> {
  let outOfMemorySince: number | null = null
  for (let attempt = 1; !isStopped(); attempt += 1) {
    try {
      return await appender.append(append)
    } catch (error) {
      if (error instanceof RivuletError && !error.row.retry) return error
      const isOutOfMemory = error instanceof RivuletError ? error.code === 'overloaded' : String(error).includes('OOM')
      outOfMemorySince = isOutOfMemory ? (outOfMemorySince ?? performance.now()) : null
      if (outOfMemorySince !== null && performance.now() - outOfMemorySince > backpressureMs)
        return new RivuletError('stream_backpressure', 'Redis is out of memory', { cause: error })
      await sleep(backoffMs(attempt, { firstMs: 100, maxMs: 1_000 }))
    }
  }
  return 'stopped'
}
