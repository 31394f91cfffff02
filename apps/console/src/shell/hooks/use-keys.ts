/**
 * Single-key shortcuts, inactive while the user types or a dialog is open. A person who speaks to the browser, or whose hand trembles, can turn off
 * those that are characters (WCAG 2.1.4).
 */
import { useEffect, useRef } from 'react'

export type Keys = Record<string, (event: KeyboardEvent) => void>

export function useKeys(keys: Keys): void {
  const current = useRef(keys)
  current.current = keys
  useEffect(() => {
    window.addEventListener('keydown', hear)
    return () => window.removeEventListener('keydown', hear)

    function hear(event: KeyboardEvent): void {
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return
      if (document.querySelector('dialog[open]') || (event.key.length === 1 && areOff())) return
      current.current[event.key]?.(event)
    }
  }, [])
}

export const shortcutsPlace = 'shortcuts'

function areOff(): boolean {
  return localStorage.getItem(`rivulet.${shortcutsPlace}`) === 'off'
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
