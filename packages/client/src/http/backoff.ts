/** The delay before the next retry, and the wait itself. */
import { backoffMs } from '@rivulet/protocol'

/** Calls back when an immediate retry is worthwhile; returns a function that stops that. */
export type WakeUps = (wake: () => void) => () => void

const firstDelayMs = 100
export const maxDelayMs = 5_000

/** @param failures in a row before the last one, from 0. */
export function retryDelayMs(failures: number, random: () => number): number {
  return Math.max(firstDelayMs, backoffMs(failures + 1, { firstMs: firstDelayMs, maxMs: maxDelayMs, random }))
}

/** Resolves after a time or when woken, whichever is first. Rejects with the signal's reason. */
export function pause(ms: number, { signal, wakeUps }: { signal?: AbortSignal | undefined; wakeUps: WakeUps }): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const timer = setTimeout(finish, ms)
    const stop = wakeUps(finish)
    signal?.addEventListener('abort', finish)

    function finish(): void {
      clearTimeout(timer)
      stop()
      signal?.removeEventListener('abort', finish)
      if (signal?.aborted) reject(signal.reason)
      else resolve()
    }
  })
}

type Page = {
  addEventListener?(type: 'online', listener: () => void): void
  removeEventListener?(type: 'online', listener: () => void): void
  document?: {
    visibilityState: string
    addEventListener(type: 'visibilitychange', listener: () => void): void
    removeEventListener(type: 'visibilitychange', listener: () => void): void
  }
}

/** A browser that is online again, or whose hidden tab is looked at again. Nothing outside of a browser. */
export const pageWakeUps: WakeUps = wake => {
  const page: Page = globalThis as Page
  const { document } = page
  page.addEventListener?.('online', wake)
  document?.addEventListener('visibilitychange', look)
  return () => {
    page.removeEventListener?.('online', wake)
    document?.removeEventListener('visibilitychange', look)
  }

  function look(): void {
    if (document?.visibilityState === 'visible') wake()
  }
}
