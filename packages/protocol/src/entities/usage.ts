/** Token counts of several responses together. */
import type { Usage } from './entities.ts'

/** Undefined when every usage is undefined. */
export function sumUsage(usages: readonly (Usage | undefined)[]): Usage | undefined {
  const counted = usages.filter(usage => usage !== undefined)
  if (counted.length === 0) return undefined
  const sum = new Map<string, number>()
  for (const [name, count] of counted.flatMap(usage => Object.entries(usage))) {
    const total = (sum.get(name) ?? 0) + count
    // JSON has no infinity, so a turn with such a usage could not be finished.
    if (Number.isFinite(total)) sum.set(name, total)
  }
  return Object.fromEntries(sum)
}
