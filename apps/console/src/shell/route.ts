/**
 * Where the page is: its address is its state, so that a reload, a second tab and a link all show the same.
 */
import { useCallback, useMemo, useSyncExternalStore } from 'react'

export type Route = { page: 'tasks' } | { page: 'task'; id: string } | { page: 'agents' }

export function routeOf(path: string): Route {
  const [, id] = /^\/tasks\/([^/]+)$/.exec(path) ?? []
  if (id) return { page: 'task', id: decodeURIComponent(id) }
  return path === '/agents' ? { page: 'agents' } : { page: 'tasks' }
}

export function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`
}

export function navigate(to: string): void {
  history.pushState(null, '', to)
  tell()
}

export function useRoute(): Route {
  const path = useSyncExternalStore(subscribe, () => location.pathname)
  return useMemo(() => routeOf(path), [path])
}

/** A value in the address's query. Setting it adds no step to the history: going back leaves the page. */
export function useQuery(name: string): [string | null, (value: string | null) => void] {
  const value = useSyncExternalStore(subscribe, () => new URLSearchParams(location.search).get(name))
  return [value, useCallback((value: string | null) => setQuery(name, value), [name])]
}

function setQuery(name: string, value: string | null): void {
  const query = new URLSearchParams(location.search)
  if (value === null || value === '') query.delete(name)
  else query.set(name, value)
  const text = query.toString()
  history.replaceState(null, '', text ? `${location.pathname}?${text}` : location.pathname)
  tell()
}

const listeners = new Set<() => void>()

function tell(): void {
  for (const listener of [...listeners]) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  window.addEventListener('popstate', listener)
  return () => {
    listeners.delete(listener)
    window.removeEventListener('popstate', listener)
  }
}
