/**
 * Keeps a scroller at its end while it grows, until its reader scrolls up.
 *
 * What the reader wants is kept in a ref and changed by the reader's own events, because a state would be read before React commits it: text that grows
 * meanwhile would pull the reader back. `onChange` is called after each change. While it sticks, the browser's scroll anchoring is off: it would move
 * the scroller, too.
 */
import { type RefObject, useEffect, useRef } from 'react'

const nearEndPx = 48
const upKeys = new Set(['ArrowUp', 'PageUp', 'Home'])
const downKeys = new Set(['ArrowDown', 'PageDown', 'End', ' '])

type Stick = { isStuck(): boolean; stick(): void; letGo(): void }

type StickOptions = {
  onChange?(isStuck: boolean): void
  /** Whether the end of the scroller is the end of what there is. */
  mayStick?(): boolean
}

export function useStickToEnd(scroller: RefObject<HTMLElement | null>, options: StickOptions = {}): Stick {
  const isStuck = useRef(true)
  const latest = useRef(options)
  latest.current = options

  // biome-ignore lint/correctness/useExhaustiveDependencies: `set` changes refs only
  useEffect(() => {
    const element = scroller.current
    const content = element?.firstElementChild
    if (!element || !content) return
    // Unknown until the reader has said: a scrollbar that is dragged says it by where it leads.
    let wanted: 'up' | 'down' | 'unknown' = 'unknown'
    let lastTop = element.scrollTop
    element.style.overflowAnchor = isStuck.current ? 'none' : ''
    const grown = new ResizeObserver(() => {
      if (isStuck.current && !isTypedIn(element)) toEnd(element)
    })
    grown.observe(content)
    grown.observe(element)
    const passive = { passive: true }
    element.addEventListener('wheel', turn, passive)
    element.addEventListener('keydown', press)
    element.addEventListener('pointerdown', drag, passive)
    element.addEventListener('touchstart', drag, passive)
    element.addEventListener('scroll', look, passive)
    return () => {
      grown.disconnect()
      element.removeEventListener('wheel', turn)
      element.removeEventListener('keydown', press)
      element.removeEventListener('pointerdown', drag)
      element.removeEventListener('touchstart', drag)
      element.removeEventListener('scroll', look)
    }

    function turn({ deltaY }: WheelEvent): void {
      if (deltaY !== 0) want(deltaY < 0 ? 'up' : 'down')
    }

    function press({ key, shiftKey }: KeyboardEvent): void {
      if (upKeys.has(key) || (key === ' ' && shiftKey)) want('up')
      else if (downKeys.has(key)) want('down')
    }

    function drag(): void {
      wanted = 'unknown'
    }

    function want(way: 'up' | 'down'): void {
      wanted = way
      if (way === 'up' && element && element.scrollTop > 0) set(false)
    }

    function look(): void {
      if (!element) return
      const { scrollTop, scrollHeight, clientHeight } = element
      const isNearEnd = scrollHeight - scrollTop - clientHeight < nearEndPx
      if (isStuck.current && scrollTop < lastTop - 1 && !isNearEnd) set(false)
      else if (!isStuck.current && isNearEnd && scrollTop > lastTop && wanted !== 'up' && (latest.current.mayStick?.() ?? true)) set(true)
      lastTop = scrollTop
    }
  }, [scroller])

  return { isStuck: () => isStuck.current, stick: () => set(true), letGo: () => set(false) }

  function set(next: boolean): void {
    if (next) toEnd(scroller.current)
    if (next === isStuck.current) return
    if (scroller.current) scroller.current.style.overflowAnchor = next ? 'none' : ''
    isStuck.current = next
    latest.current.onChange?.(next)
  }
}

/** A form in the scroller stays in sight while a person fills it in. */
function isTypedIn(element: HTMLElement): boolean {
  const { activeElement } = document
  return activeElement?.matches('input, textarea, select') === true && element.contains(activeElement)
}

function toEnd(element: HTMLElement | null): void {
  if (element) element.scrollTop = element.scrollHeight
}
