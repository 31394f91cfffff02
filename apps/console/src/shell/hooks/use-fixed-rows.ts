/** Which rows of a long list are in sight, where every row is as high as the next. */
import { type RefObject, useEffect, useRef, useState } from 'react'

const spare = 12

export type FixedRows = {
  scroller: RefObject<HTMLDivElement | null>
  from: number
  to: number
  totalPx: number
  show(row: number): void
}

export function useFixedRows(total: number, rowPx: number): FixedRows {
  const scroller = useRef<HTMLDivElement>(null)
  const [seen, setSeen] = useState({ top: 0, height: 800 })
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
