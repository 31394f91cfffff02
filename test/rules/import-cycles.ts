/**
 * Circles of files that load each other.
 *
 * Only what runs counts: a type-only import is erased, so two files may describe each other's types. A dynamic import counts, because it only
 * hides the circle. Circles between workspaces cannot arise where the table of imports holds, so relative imports are all that is followed.
 */
import { posix } from 'node:path'
import { factsOf, type Source } from './source-facts.ts'

/** Each file imports the next, and the last imports the first. */
export type Cycle = string[]

/** One circle for each import that closes one, so that breaking what is reported leaves none. */
export function cyclesIn(sources: Source[]): Cycle[] {
  const targetsOf = new Map(sources.map(source => [source.path, relativeTargets(source)]))
  const visited = new Set<string>()
  const trail: string[] = []
  const cycles: Cycle[] = []
  for (const { path } of sources) visit(path)
  return cycles

  function visit(path: string): void {
    const at = trail.indexOf(path)
    if (at >= 0) cycles.push(trail.slice(at))
    if (visited.has(path)) return
    visited.add(path)
    trail.push(path)
    for (const target of targetsOf.get(path) ?? []) visit(target)
    trail.pop()
  }
}

function relativeTargets(source: Source): string[] {
  const { imports } = factsOf(source)
  const followed = imports.filter(({ specifier, isTypeOnly }) => specifier.startsWith('.') && !isTypeOnly)
  return followed.map(({ specifier }) => posix.join(posix.dirname(source.path), specifier))
}
