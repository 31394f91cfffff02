/**
 * Which of a task's messages are in the page: the latest at once, and up to 2,000 when the browser has time, so that its own search, printing and screen
 * readers have them. What is far from the screen is not drawn (`content-visibility`).
 *
 * While it follows, the window holds the latest messages and stays at the end, whatever grows. Scrolling up stops following; scrolling back down,
 * or `follow()`, starts it again. Near either edge the window moves on; the browser keeps in place what is being read.
 */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { useStickToEnd } from '../shell/hooks/use-stick-to-end.ts'

const step = 40
const mostShown = 2_000
/** How many the window grows by when the browser has time. */
const grownAtOnce = 100

type MessageWindow = {
  from: number
  to: number
  isFollowing: boolean
  scroller: RefObject<HTMLDivElement | null>
  topMark: RefObject<HTMLDivElement | null>
  bottomMark: RefObject<HTMLDivElement | null>
  follow(): void
  /** Moves the window to a message that is known. */
  show(index: number): void
}

type WindowOptions = {
  /** Indexes of the first message that is known, and of the one after the last. */
  first: number
  end: number
  /** Asks for messages before `first`. */
  loadEarlier(): void
}

export function useMessageWindow({ first, end, loadEarlier }: WindowOptions): MessageWindow {
  const scroller = useRef<HTMLDivElement>(null)
  const topMark = useRef<HTMLDivElement>(null)
  const bottomMark = useRef<HTMLDivElement>(null)
  /** Null while it follows. */
  const [place, setPlace] = useState<{ from: number; to: number } | null>(null)
  /** How many messages above the latest are in the page while it follows. */
  const [above, setAbove] = useState(0)
  const isFollowing = place === null
  const latest = Math.max(first, Math.floor((end - step) / step) * step)
  const from = Math.max(first, place ? Math.min(place.from, latest) : latest - above)
  const to = place ? Math.min(end, place.to) : end
  const now = { first, end, from, to, isFollowing, loadEarlier }
  const current = useRef(now)
  current.current = now
  const { stick, letGo } = useStickToEnd(scroller, {
    onChange: isStuck => setPlace(isStuck ? null : { from: current.current.from, to: Number.MAX_SAFE_INTEGER }),
    // The end of a window is not the end of the task.
    mayStick: () => current.current.to === current.current.end,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: once the latest messages are there
  useLayoutEffect(() => {
    if (isFollowing) stick()
  }, [isFollowing])

  // biome-ignore lint/correctness/useExhaustiveDependencies: a mark that stays in sight must be observed again after the window moved
  useEffect(() => {
    const root = scroller.current
    const seen = new IntersectionObserver(
      entries => {
        for (const { isIntersecting, target } of entries) {
          if (isIntersecting && root && root.scrollHeight > root.clientHeight) move(target === topMark.current ? 'up' : 'down')
        }
      },
      { root, rootMargin: '800px 0px' },
    )
    for (const mark of [topMark, bottomMark]) if (mark.current) seen.observe(mark.current)
    return () => seen.disconnect()

    function move(way: 'up' | 'down'): void {
      const { first, end, from, to, isFollowing, loadEarlier } = current.current
      if (isFollowing) return
      if (way === 'down') {
        setPlace({ from: Math.max(from, to + step - mostShown), to: to + step >= end ? Number.MAX_SAFE_INTEGER : to + step })
        return
      }
      // At scroll position 0 a browser keeps the top in place, and not the message that is being read.
      if (root?.scrollTop === 0) root.scrollTop = 1
      if (from - step < first) loadEarlier()
      setPlace({ from: Math.max(0, from - step), to: Math.min(to, from - step + mostShown) })
    }
  }, [from, to, first])

  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each size of the window
  useEffect(() => {
    if (to - from >= mostShown || from === 0) return
    return whenIdle(() => {
      if (from - grownAtOnce < first) current.current.loadEarlier()
      if (place) setPlace({ ...place, from: Math.max(0, from - grownAtOnce) })
      else setAbove(latest - from + grownAtOnce)
    })
  }, [from, first, isFollowing])

  // Paper has no scroller: all that was loaded is printed. Back to the end afterwards, because the window is too large to stay.
  useEffect(() => {
    const before = () => flushSync(() => setPlace({ from: 0, to: Number.MAX_SAFE_INTEGER }))
    const after = () => setPlace(null)
    window.addEventListener('beforeprint', before)
    window.addEventListener('afterprint', after)
    return () => {
      window.removeEventListener('beforeprint', before)
      window.removeEventListener('afterprint', after)
    }
  }, [])

  return { from, to, isFollowing, scroller, topMark, bottomMark, follow: () => setPlace(null), show }

  function show(index: number): void {
    letGo()
    setPlace({ from: Math.max(first, index - step), to: index + step >= end ? Number.MAX_SAFE_INTEGER : index + mostShown - step })
  }
}

/** Safari has no idle callback. */
function whenIdle(work: () => void): () => void {
  if (typeof requestIdleCallback !== 'function') {
    const timer = setTimeout(work, 200)
    return () => clearTimeout(timer)
  }
  const handle = requestIdleCallback(work)
  return () => cancelIdleCallback(handle)
}
