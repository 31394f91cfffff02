/**
 * The list of tasks. It polls the newest tasks and those in sight. A hidden page sends no requests.
 */
import { RivuletError, type TaskStatus } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useCallback, useEffect, useRef, useState } from 'react'
import { emptyBook, mergePage, type TaskBook } from './task-book.ts'

const pauseMs = 2_000
const pageSize = 100

export type TaskFilter = { agent: string | null; status: TaskStatus | null }

export type TaskList = {
  book: TaskBook
  isLoading: boolean
  error: string | null
  loadMore(): void
  /** Reports which rows are visible. */
  look(from: number): void
}

export function useTaskList({ agent, status }: TaskFilter): TaskList {
  const client = useClient()
  const [book, setBook] = useState(emptyBook)
  const [isLoading, setLoading] = useState(true)
  const [error, setError] = useState<string | null>(null)
  const current = useRef(book)
  current.current = book
  const firstSeen = useRef(0)
  const ask = useRef(async (_after: string | null): Promise<void> => {})
  const asking = useRef(new Set<string | null>())

  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    let timer: ReturnType<typeof setTimeout> | undefined
    const query = { ...(agent && { agent }), ...(status && { status }), limit: pageSize }
    asking.current.clear()
    setBook(emptyBook)
    setLoading(true)

    ask.current = async after => {
      if (asking.current.has(after)) return
      asking.current.add(after)
      try {
        const page = await client.tasks.list({ ...query, ...(after !== null && { cursor: after }) }, { signal })
        if (signal.aborted) return
        setBook(book => mergePage(book, page, after))
        setError(null)
      } catch (reason) {
        if (!signal.aborted) setError(reason instanceof RivuletError ? reason.message : String(reason))
      } finally {
        asking.current.delete(after)
        if (!signal.aborted) setLoading(false)
      }
    }
    void poll()
    document.addEventListener('visibilitychange', wake)
    return () => {
      leaving.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', wake)
    }

    async function poll(): Promise<void> {
      clearTimeout(timer)
      if (document.visibilityState === 'visible') {
        await ask.current(null)
        const above = current.current.tasks[firstSeen.current - 1]
        if (above && firstSeen.current >= pageSize / 2) await ask.current(above.id)
      }
      if (!signal.aborted) timer = setTimeout(() => void poll(), pauseMs)
    }

    function wake(): void {
      if (document.visibilityState === 'visible') void poll()
    }
  }, [client, agent, status])

  const loadMore = useCallback(() => {
    const { nextCursor } = current.current
    if (nextCursor !== null) void ask.current(nextCursor)
  }, [])
  const look = useCallback((from: number) => {
    firstSeen.current = from
  }, [])
  return { book, isLoading, error, loadMore, look }
}
