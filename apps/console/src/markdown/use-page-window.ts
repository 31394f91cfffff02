/**
 * Whether a page of a long text is near the screen. One that is not is drawn as a gap of its height, so that the number of elements does not grow with
 * the text. The height of a page that was never drawn is a guess, which the browser's scroll anchoring corrects.
 */
import { type RefObject, useEffect, useRef, useState } from 'react'

const nearPx = 3_000
const guessedPx = 1_600

export type PageWindow = { ref: RefObject<HTMLDivElement | null>; gapPx: number | null }

/** @param isNear whether it is drawn at first */
export function usePageWindow(isNear: boolean): PageWindow {
  const ref = useRef<HTMLDivElement>(null)
  const heightPx = useRef(guessedPx)
  const [gapPx, setGapPx] = useState<number | null>(isNear ? null : guessedPx)
  useEffect(() => {
    const element = ref.current
    if (!element) return
    const seen = new IntersectionObserver(
      ([entry]) => {
        if (!entry) return
        if (entry.isIntersecting) setGapPx(null)
        else
          setGapPx(before => {
            if (before === null) heightPx.current = entry.boundingClientRect.height
            return heightPx.current
          })
      },
      { root: element.closest('[role=log]'), rootMargin: `${nearPx}px 0px` },
    )
    seen.observe(element)
    return () => seen.disconnect()
  }, [])
  return { ref, gapPx }
}
