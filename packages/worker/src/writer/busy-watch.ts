/**
 * Whether a thread has little time left: in the last window, its event loop had work for more than 70 % of the time. Time in which the loop waits for events
 * counts as idle. A window begins when the one before was read, so after a pause the first one says nothing of now, and counts as idle.
 */
import { performance } from 'node:perf_hooks'

const busyShare = 0.7
const windowMs = 100
const staleMs = 1_000

/** What the event loop has spent in all, in ms. */
export type LoopTimes = { active: number; idle: number }

export function createBusyWatch(read: () => LoopTimes = () => performance.eventLoopUtilization()): () => boolean {
  let begin = read()
  let isBusy = false
  return () => {
    const now = read()
    const active = now.active - begin.active
    const window = active + now.idle - begin.idle
    if (window < windowMs) return isBusy
    isBusy = window < staleMs && active / window > busyShare
    begin = now
    return isBusy
  }
}
