/** Measures a process's garbage collections and its event loop lag. */
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'

export type Pauses = { loopP99Ms: number; loopMaxMs: number; gcMs: number; gcMaxMs: number }

/** Handlers for `handleRequests`: `beginProbe`, then `readProbe`. */
export function createProbe() {
  const lag = monitorEventLoopDelay({ resolution: 1 })
  let gcMs = 0
  let gcMaxMs = 0
  const collections = new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) {
      gcMs += duration
      gcMaxMs = Math.max(gcMaxMs, duration)
    }
  })
  return { beginProbe, readProbe }

  function beginProbe(): void {
    gcMs = 0
    gcMaxMs = 0
    lag.reset()
    lag.enable()
    collections.observe({ entryTypes: ['gc'] })
  }

  /** The loop's lag without the millisecond that its own timer takes. */
  function readProbe(): Pauses {
    lag.disable()
    collections.disconnect()
    const ms = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - 1)
    return { loopP99Ms: ms(lag.percentile(99)), loopMaxMs: ms(lag.max), gcMs, gcMaxMs }
  }
}
