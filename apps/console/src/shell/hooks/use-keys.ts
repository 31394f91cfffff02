/** Single-key shortcuts, inactive while the user types or a dialog is open. */
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
      if (document.querySelector('dialog[open]')) return
      current.current[event.key]?.(event)
    }
  }, [])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
