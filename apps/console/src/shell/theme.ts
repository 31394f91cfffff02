/** Light, dark, or as the system says. */
import { useState } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const place = 'rivulet.theme'

export function applyStoredTheme(): void {
  apply(stored())
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored)
  return [
    theme,
    next => {
      localStorage.setItem(place, next)
      apply(next)
      setTheme(next)
    },
  ]
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
