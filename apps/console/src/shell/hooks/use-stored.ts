/** A text that outlives the component: what was typed and not sent, or what a person prefers. Components with the same name share it. */
import { useCallback, useSyncExternalStore } from 'react'

const listeners = new Set<() => void>()

/** @param storage of the tab, or of the browser */
export function useStored(name: string, storage: Storage = sessionStorage): [string, (value: string) => void] {
  const place = `rivulet.${name}`
  const value = useSyncExternalStore(subscribe, () => storage.getItem(place) ?? '')
  const set = useCallback((value: string) => store(storage, place, value), [storage, place])
  return [value, set]
}

function store(storage: Storage, place: string, value: string): void {
  if (value === '') storage.removeItem(place)
  else storage.setItem(place, value)
  for (const listener of [...listeners]) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
