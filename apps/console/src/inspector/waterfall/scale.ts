/** The axis of the waterfall: moments that are easy to read, and the part of the time that is shown. */
export type Range = { from: number; to: number }

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const steps = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map(value => value * second),
  ...[1, 2, 5, 10, 15, 30].map(value => value * minute),
  ...[1, 2, 6, 12, 24, 168].map(value => value * hour),
]
const leastMs = 5

/** Multiples of a step from the begin of the task, at most `most` of them. */
export function ticksIn({ from, to }: Range, start: number, most = 5): number[] {
  const step = steps.find(value => (to - from) / value <= most) ?? Math.ceil((to - from) / most / hour) * hour
  const first = Math.ceil((from - start) / step)
  return Array.from({ length: Math.max(0, Math.floor((to - start) / step) - first + 1) }, (_, place) => start + (first + place) * step)
}

/** In percent of the range, within it. */
export function placeIn({ from, to }: Range, at: number): number {
  return Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100))
}

/** @param factor below 1 shows less. @param at stays where it is */
export function zoomed(range: Range, whole: Range, factor: number, at = (range.from + range.to) / 2): Range | null {
  const from = Math.max(whole.from, at - (at - range.from) * factor)
  const to = Math.min(whole.to, at + (range.to - at) * factor)
  if (from <= whole.from && to >= whole.to) return null
  return to - from < leastMs ? range : { from, to }
}
