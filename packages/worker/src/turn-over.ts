/**
 * Speaking in a turn that is over: it has ended, was canceled, lost or given back. Whoever waits for what they said is told so; a handler that
 * was interrupted ends by it.
 */
import { RivuletError } from '@rivulet/protocol'
import type { Logger } from './logger.ts'

export function turnOver(why: string): RivuletError {
  return new RivuletError('turn_over', `Nothing can be said in this turn any more: ${why}`)
}

/**
 * Keeps the process, and every other turn in it, alive when something came too late and nobody waited for it. Any other rejection that nobody
 * handles ends the process, as it does without us. Answers what takes the guard away.
 */
export function surviveLateWords(log: Logger): () => void {
  if (logs.size === 0) process.on('unhandledRejection', decide)
  logs.add(log)
  return () => {
    logs.delete(log)
    if (logs.size === 0) process.off('unhandledRejection', decide)
  }
}

/** Of the workers in this process. */
const logs = new Set<Logger>()

function decide(reason: unknown): void {
  if (reason instanceof RivuletError && reason.code === 'turn_over') {
    for (const log of logs) log.warn({ reason: reason.message }, 'something was said after its turn was over, and nobody waited for it')
    return
  }
  // A program with a listener of its own has decided what is to happen.
  if (process.listenerCount('unhandledRejection') === 1) throw reason
}
