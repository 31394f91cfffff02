/** The messages before those that the live view has, page by page, as somebody scrolls to them. */
import type { Message, TaskHandle } from '@rivulet/client'
import { useCallback, useMemo, useRef, useState } from 'react'

export type Earlier = { messages: readonly Message[]; hasMore: boolean; load(): void }

const pageSize = 100

/** @param first the lowest index that the live view has */
export function useEarlier(task: TaskHandle | null, first: number): Earlier {
  const [loaded, setLoaded] = useState<readonly Message[]>([])
  const isLoading = useRef(false)
  const messages = useMemo(() => joining(loaded, first), [loaded, first])
  const start = messages[0]?.index ?? first

  const load = useCallback(() => {
    if (!task || isLoading.current || start === 0) return
    isLoading.current = true
    const after = start - pageSize - 1
    task
      .messages({ limit: Math.min(pageSize, start), ...(after >= 0 && { after }) })
      .then(
        ({ data }) => setLoaded(known => [...data.filter(({ index }) => index < start), ...known.filter(({ index }) => index >= start)]),
        // It is asked for again when it comes into sight again.
        () => {},
      )
      .finally(() => {
        isLoading.current = false
      })
  }, [task, start])

  return { messages, hasMore: start > 0, load }
}

/** Those that reach up to `first` without a hole: a view that was repaired may begin elsewhere than before. */
function joining(loaded: readonly Message[], first: number): readonly Message[] {
  const before = loaded.filter(({ index }) => index < first)
  return before.at(-1)?.index === first - 1 ? before : []
}
