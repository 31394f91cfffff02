/**
 * What the page has read from the API, shared by all components: a value that several of them show is requested once, and is there at once when a page
 * is opened again. A query is refreshed at its own pace while the page is visible, or by the feed; a value that could not be refreshed stays, with the
 * error.
 */
import { RivuletError } from '@rivulet/client'
import { QueryClient, useQuery } from '@tanstack/react-query'
import { useRef } from 'react'

export const queries = new QueryClient({
  // The client has retried already.
  defaultOptions: { queries: { retry: false, staleTime: 1_000, gcTime: 30 * 60_000, networkMode: 'always' } },
})

const afterErrorMs = 5_000

export type Polled<T> = { value: T | null; error: string | null; updatedAt: number; refresh(): void }

/** @param everyMs false for a value that the feed keeps live: then it is read again only after an error */
export function usePolled<T>(name: readonly unknown[], read: (signal: AbortSignal) => Promise<T>, everyMs: number | false): Polled<T> {
  const latest = useRef(read)
  latest.current = read
  const { data, error, dataUpdatedAt, refetch } = useQuery({
    queryKey: name,
    queryFn: ({ signal }) => latest.current(signal),
    // What the key may not read now, it may not read later.
    refetchInterval: ({ state: { error } }) => (isForbidden(error) ? false : everyMs === false && error ? afterErrorMs : everyMs),
    // Entities keep their identity by other means, and a large page would be compared value by value.
    structuralSharing: false,
  })
  return { value: data ?? null, error: error && textOf(error), updatedAt: dataUpdatedAt, refresh: () => void refetch() }
}

/** With the fields that the server names, and what is wrong with each. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const details = error instanceof RivuletError ? (error.details ?? []) : []
  const reasons = details.map(({ path, reason }) => [path.replace(/^\//, ''), reason].filter(Boolean).join(': '))
  return [withoutReason(error), ...reasons].join('. ')
}

/** The API repeats the first reason in the message, for programs that show nothing else. */
export function withoutReason(error: Error): string {
  const [first] = error instanceof RivuletError ? (error.details ?? []) : []
  const at = first ? error.message.indexOf(`: ${first.path}: `) : -1
  return at < 0 ? error.message : error.message.slice(0, at)
}

function isForbidden(error: unknown): boolean {
  return error instanceof RivuletError && error.code === 'forbidden'
}
