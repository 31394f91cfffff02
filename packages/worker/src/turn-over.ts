/**
 * A turn that is over: it has ended, was canceled, lost or given back. Whoever waits for what they say in it is told so, and whatever waits
 * with its signal ends; a handler that was interrupted ends by either.
 */
import { RivuletError } from '@rivulet/protocol'
import type { Logger } from './logger.ts'

export function turnOver(why: string): RivuletError {
  return new RivuletError('turn_over', `The turn is over (${why}); output rejected`)
}

/** Why the signal of a turn fires: an `AbortError`, which is what libraries know an abort by. */
export function abortReason(over: RivuletError): Error {
  return Object.assign(new DOMException(over.message, 'AbortError'), { cause: over })
}

/**
 * Keeps the process, and every other turn in it, alive when something came too late, or was ended by its turn's signal, and nobody waited for
 * it: a cancel is no reason to end other turns. Any other rejection that nobody handles ends the process, as it does without us. Answers what
 * takes the guard away.
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
