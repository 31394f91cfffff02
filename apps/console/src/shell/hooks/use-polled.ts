/** An answer that is asked for again and again, a pause after each, while the page is looked at. */
import { useEffect, useRef, useState } from 'react'

export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, pauseMs: number): { value: T | null; error: string | null } {
  const [value, setValue] = useState<T | null>(null)
  const [error, setError] = useState<string | null>(null)
  const latest = useRef(ask)
  latest.current = ask
  useEffect(() => {
    const { signal, abort } = leavable()
    let timer: ReturnType<typeof setTimeout> | undefined
    void poll()
    return () => {
      abort()
      clearTimeout(timer)
    }

    async function poll(): Promise<void> {
      try {
        if (document.visibilityState === 'visible') setValue(await latest.current(signal))
        setError(null)
      } catch (reason) {
        if (!signal.aborted) setError(reason instanceof Error ? reason.message : String(reason))
      }
      if (!signal.aborted) timer = setTimeout(() => void poll(), pauseMs)
    }
  }, [pauseMs])
  return { value, error }
}

function leavable(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}
