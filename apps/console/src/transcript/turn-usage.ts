/** What turns and attempts used. */
import { type Turn, tokensOf } from '@rivulet/client'

/** Tokens of all attempts of a turn, or of one attempt. */
export function tokensIn({ usage, usageTotal }: Pick<Turn, 'usage' | 'usageTotal'>): number {
  const all = usageTotal ?? usage
  return all ? tokensOf(all) : 0
}

/** Null where a turn used something that has no price. */
export function costIn(turns: readonly Pick<Turn, 'usage' | 'usageTotal' | 'cost'>[]): number | null {
  const used = turns.filter(turn => tokensIn(turn) > 0)
  return used.length === 0 || used.some(({ cost }) => cost === undefined) ? null : used.reduce((sum, { cost = 0 }) => sum + cost, 0)
}
