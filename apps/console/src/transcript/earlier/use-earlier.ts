/** The messages before those of the live view, loaded page by page as the reader scrolls to them. */
import type { Message, TaskHandle } from '@rivulet/client'
import { useCallback, useMemo, useRef, useState } from 'react'
import { readEarlier } from './earlier-page.ts'

export type Earlier = { messages: readonly Message[]; hasMore: boolean; load(): void }

/** @param first where the messages of the live view begin, also where it has none */
export function useEarlier(task: TaskHandle | null, first: number): Earlier {
  const [loaded, setLoaded] = useState<readonly Message[]>([])
  const isLoading = useRef(false)
  const messages = useMemo(() => joining(loaded, first), [loaded, first])
  const start = messages[0]?.index ?? first

  const load = useCallback(() => {
    if (!task || isLoading.current || start === 0) return
    isLoading.current = true
    readEarlier(task, start)
      .then(
        found => setLoaded(known => [...found.filter(({ index }) => index < start), ...known.filter(({ index }) => index >= start)]),
        // The page loads it again when it becomes visible again.
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
