/** A value that changes quickly, for what is expensive to draw: the latest one, at most so often. */
import { useEffect, useRef, useState } from 'react'

export function usePaced<T>(value: T, everyMs: number): T {
  const [paced, setPaced] = useState(value)
  const latest = useRef(value)
  latest.current = value
  useEffect(() => {
    const timer = setInterval(() => setPaced(() => latest.current), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return paced
}
