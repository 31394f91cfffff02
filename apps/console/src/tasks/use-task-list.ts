/**
 * The list of tasks, in the query cache: when the feed tells of a change, the page reads the newest and those in sight again. What was loaded is there at
 * once when the list is opened again.
 */
import type { RivuletClient, TaskQuery } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useCallback, useRef } from 'react'
import { useFeedPace } from '../shell/feed.ts'
import { queries, usePolled } from '../shell/queries.ts'
import { emptyBook, mergePage, type TaskBook } from './task-book.ts'

const pageSize = 100

type TaskList = {
  book: TaskBook
  /** Until the first page is there. */
  isLoading: boolean
  error: string | null
  updatedAt: number
  refresh(): void
  loadMore(): void
  /** Reports which rows are visible. */
  look(from: number): void
}

export function useTaskList(filter: TaskQuery): TaskList {
  const client = useClient()
  const name = ['tasks', filter]
  const firstSeen = useRef(0)
  const isLoadingMore = useRef(false)
  const { value, error, updatedAt, refresh } = usePolled(name, read, useFeedPace())
  const book = value ?? emptyBook
  const current = useRef(book)
  current.current = book

  const loadMore = useCallback(() => {
    const after = current.current.nextCursor
    if (after === null || isLoadingMore.current) return
    isLoadingMore.current = true
    pageAfter(client, filter, after)
      .then(page => queries.setQueryData<TaskBook>(['tasks', filter], before => before && mergePage(before, page, after)))
      // The list asks again when its end comes into sight again, and says itself that it is not up to date.
      .catch(() => {})
      .finally(() => {
        isLoadingMore.current = false
      })
  }, [client, filter])
  const look = useCallback((from: number) => {
    firstSeen.current = from
  }, [])
  return { book, isLoading: value === null && error === null, error, updatedAt, refresh, loadMore, look }

  async function read(signal: AbortSignal): Promise<TaskBook> {
    const newest = await pageAfter(client, filter, null, signal)
    const above = current.current.tasks[firstSeen.current - 1]?.id
    const seen = above !== undefined && firstSeen.current >= pageSize / 2 ? await pageAfter(client, filter, above, signal) : null
    // What was loaded meanwhile is kept.
    const merged = mergePage(queries.getQueryData<TaskBook>(name) ?? null, newest, null)
    return seen && above !== undefined ? mergePage(merged, seen, above) : merged
  }
}

function pageAfter(client: RivuletClient, filter: TaskQuery, after: string | null, signal?: AbortSignal) {
  return client.tasks.summaries({ ...filter, limit: pageSize, ...(after !== null && { cursor: after }) }, { signal })
}
