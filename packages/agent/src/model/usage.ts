/** Token counts of a response. Providers report them in several parts, repeat them, and leave fields out. */
import type { Usage } from '@rivulet/protocol'

/** A later report replaces the fields it has. Zero is a value; null and undefined are not. */
export function mergeUsage(before: Usage | undefined, report: Record<string, unknown>): Usage | undefined {
  const counts = Object.entries(report).filter((entry): entry is [string, number] => Number.isFinite(entry[1]))
  return counts.length === 0 ? before : { ...before, ...Object.fromEntries(counts) }
}
