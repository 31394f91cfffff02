/**
 * Where the page is: its address is its state, so that a reload, a second tab and a link all show the same.
 */
import { useCallback, useMemo, useSyncExternalStore } from 'react'

const plainPages = ['agents', 'workers', 'errors', 'dashboard', 'usage', 'schedules', 'keys', 'audit', 'waits'] as const

export type Route = { page: 'tasks' } | { page: 'task'; id: string } | { page: (typeof plainPages)[number] } | { page: 'missing' }

export function isForAdmins(page: Route['page']): boolean {
  return page === 'keys' || page === 'audit'
}

export function routeOf(path: string): Route {
  if (path === '/' || path === '/tasks') return { page: 'tasks' }
  const [, id] = /^\/tasks\/([^/]+)$/.exec(path) ?? []
  if (id) return { page: 'task', id: decoded(id) }
  const page = plainPages.find(name => path === `/${name}`)
  return page ? { page } : { page: 'missing' }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`
}

const listPlace = 'rivulet.list'

/** The list of tasks, as it was filtered last. */
export function listPath(): string {
  return sessionStorage.getItem(listPlace) ?? '/'
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
  return [value, useCallback((value: string | null) => setQuery({ [name]: value }), [name])]
}

/** The whole query, as text. */
export function useQueryText(): string {
  return useSyncExternalStore(subscribe, () => location.search)
}

export function setQuery(values: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  history.replaceState(null, '', text ? `${location.pathname}?${text}` : location.pathname)
  tell()
}

/** Remembers how the list is filtered, for the way back to it. */
function note(): void {
  if (routeOf(location.pathname).page !== 'tasks') return
  if (location.search) sessionStorage.setItem(listPlace, `/${location.search}`)
  else sessionStorage.removeItem(listPlace)
}

const listeners = new Set<() => void>()

function tell(): void {
  note()
  for (const listener of [...listeners]) listener()
}

note()
window.addEventListener('popstate', tell)

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
