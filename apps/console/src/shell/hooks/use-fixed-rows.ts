/** Which rows of a long list are in sight, where every row is as high as the next. A list with a name is found where it was left. */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'

const spare = 12

type FixedRows = {
  scroller: RefObject<HTMLDivElement | null>
  from: number
  to: number
  totalPx: number
  show(row: number): void
}

/** Where lists were left, for as long as the page lives. */
const leftAt = new Map<string, number>()

export function useFixedRows(total: number, rowPx: number, name?: string): FixedRows {
  const scroller = useRef<HTMLDivElement>(null)
  const [seen, setSeen] = useState({ top: 0, height: 800 })
  const isRestored = useRef(false)
  const hasRows = total > 0

  useLayoutEffect(() => {
    const element = scroller.current
    const top = name === undefined ? undefined : leftAt.get(name)
    if (!element || !hasRows || isRestored.current) return
    isRestored.current = true
    if (top !== undefined) element.scrollTop = top
  }, [name, hasRows])
  useEffect(() => {
    if (name !== undefined && isRestored.current) leftAt.set(name, seen.top)
  }, [name, seen.top])
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const look = () => setSeen({ top: element.scrollTop, height: element.clientHeight })
    const resized = new ResizeObserver(look)
    resized.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      resized.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [])
  const from = Math.max(0, Math.min(total, Math.floor(seen.top / rowPx)) - spare)
  const to = Math.min(total, Math.ceil((seen.top + seen.height) / rowPx) + spare)
  return { scroller, from, to, totalPx: total * rowPx, show }

  function show(row: number): void {
    const element = scroller.current
    if (!element) return
    const top = row * rowPx
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + rowPx > element.scrollTop + element.clientHeight) element.scrollTop = top + rowPx - element.clientHeight
  }
}
