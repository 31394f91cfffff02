/**
 * Discarded turns and the turn after them, as versions of one another. One of them is shown: the latest, unless the reader wants another. Nothing tells which
 * turn another one replaced, so each discarded turn is a version by itself.
 */
import type { FoldedTurn } from '@rivulet/client'
import { type Row, turnNumberOf } from './rows.ts'

/** By the number of each turn that has versions: the numbers of all of them, the latest last. */
export function versionsOf(turns: readonly FoldedTurn[]): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, readonly number[]>()
  let discarded: number[] = []
  for (const { number, status } of turns) {
    if (status === 'discarded') {
      discarded.push(number)
      continue
    }
    const versions = [...discarded, number]
    if (versions.length > 1) for (const each of versions) found.set(each, versions)
    discarded = []
  }
  return found
}

/** @param chosen the versions that the reader wants, each by the latest of its kind */
export function foldVersions(rows: readonly Row[], turns: readonly FoldedTurn[], chosen: ReadonlyMap<number, number>): readonly Row[] {
  const versions = versionsOf(turns)
  if (versions.size === 0) return rows
  const folded: Row[] = []
  let begun: readonly number[] | null = null
  for (const row of rows) {
    const turnNumber = turnNumberOf(row) ?? 0
    const numbers = versions.get(turnNumber)
    if (!numbers) {
      folded.push(row)
      continue
    }
    const latest = numbers.at(-1) ?? 0
    const shown = chosen.get(latest) ?? latest
    if (turnNumber !== shown) continue
    if (numbers !== begun) folded.push({ kind: 'versions', key: `versions ${latest}`, numbers, shown })
    begun = numbers
    folded.push(row)
  }
  return folded
}
