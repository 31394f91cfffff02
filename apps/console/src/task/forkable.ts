/** Which turns a copy of a task may end with. */
import { type FoldedTurn, hasEnded } from '@rivulet/client'

export function isForkable(status: FoldedTurn['status']): boolean {
  return hasEnded(status) && status !== 'discarded'
}
