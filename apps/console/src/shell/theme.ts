/** Light, dark, or as the system says. */
import { useSyncExternalStore } from 'react'
import { useMedia } from './hooks/use-media.ts'

export type Theme = 'system' | 'light' | 'dark'

const place = 'rivulet.theme'

export function applyStoredTheme(): void {
  apply(stored())
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const theme = useSyncExternalStore(subscribe, stored)
  return [theme, set]
}

/** What is drawn: for what reads its colours itself. */
export function useIsDark(): boolean {
  const [theme] = useTheme()
  const isSystemDark = useMedia('(prefers-color-scheme: dark)')
  return theme === 'system' ? isSystemDark : theme === 'dark'
}

function set(next: Theme): void {
  localStorage.setItem(place, next)
  apply(next)
  for (const listener of [...listeners]) listener()
}

const listeners = new Set<() => void>()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function stored(): Theme {
  const value = localStorage.getItem(place)
  return value === 'light' || value === 'dark' ? value : 'system'
}

function apply(theme: Theme): void {
  const { dataset } = document.documentElement
  if (theme === 'system') delete dataset.theme
  else dataset.theme = theme
}
