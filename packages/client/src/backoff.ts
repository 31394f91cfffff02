/** The delay before the next retry, and the wait itself. */

/** Calls back when an immediate retry is worthwhile; returns a function that stops that. */
export type WakeUps = (wake: () => void) => () => void

const firstDelayMs = 100
export const maxDelayMs = 5_000

/** Doubles with each failure in a row, jittered downwards by up to half: those who were cut off together do not come back together. */
export function backoffMs(failures: number, random: () => number): number {
  const whole = Math.min(maxDelayMs, firstDelayMs * 2 ** failures)
  return Math.max(firstDelayMs, whole * (0.5 + random() / 2))
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
