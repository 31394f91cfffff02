/**
 * A turn that is over: it has ended, or was canceled, lost or released. Code that awaits its output gets `turn_over`, and a call that waits
 * with its signal is aborted; either ends an interrupted handler.
 */
import { RivuletError } from '@rivulet/protocol'
import type { Logger } from '../logger.ts'

export function turnOver(why: string): RivuletError {
  return new RivuletError('turn_over', `The turn is over (${why}); output rejected`)
}

/** Why the signal of a turn fires: an `AbortError`, which is what libraries know an abort by. */
export function abortReason(over: RivuletError): Error {
  return Object.assign(new DOMException(over.message, 'AbortError'), { cause: over })
}

/**
 * Keeps the process, and every other turn in it, alive when late output, or a call that its turn's signal aborted, rejects without a handler for
 * it, because a cancel must not end other turns. Any other unhandled rejection ends the process, as in plain Node. Returns a function that
 * removes the guard.
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
  const over = turnOverBehind(reason)
  if (over) {
    for (const log of logs) log.warn({ reason: over.message }, 'code continued after its turn was over, and its error was not handled')
    return
  }
  // A program with a listener of its own has decided what is to happen.
  if (process.listenerCount('unhandledRejection') === 1) throw reason
}

/** `fetch` rejects with the reason of a signal, timers with an error that has it as its cause. */
function turnOverBehind(reason: unknown, maxDepth = 8): RivuletError | null {
  if (!(reason instanceof Error) || maxDepth === 0) return null
  return reason instanceof RivuletError && reason.code === 'turn_over' ? reason : turnOverBehind(reason.cause, maxDepth - 1)
}
