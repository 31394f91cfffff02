/** Token counts of a response, as its provider reports them: piece by piece, repeatedly, with holes. */
import type { Usage } from '@rivulet/protocol'

/** A later report replaces what it names; zero counts, null does not. */
export function mergeUsage(before: Usage | undefined, report: Record<string, unknown>): Usage | undefined {
  const counts = Object.entries(report).filter((entry): entry is [string, number] => Number.isFinite(entry[1]))
  return counts.length === 0 ? before : { ...before, ...Object.fromEntries(counts) }
}
