/** How long turns have been at work, taken together. */
import type { FoldedTurn } from '@rivulet/client'

export function runningMs(turns: readonly Pick<FoldedTurn, 'startedAt' | 'finishedAt'>[], now: number): number {
  return turns.reduce((sum, { startedAt, finishedAt }) => {
    if (!startedAt) return sum
    return sum + Math.max(0, (finishedAt ? Date.parse(finishedAt) : now) - Date.parse(startedAt))
  }, 0)
}
