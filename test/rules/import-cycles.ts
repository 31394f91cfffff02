/**
 * Circles of files that import each other.
 *
 * Every import counts. A type-only one is erased before the program runs, but files whose types need each other cannot be read or moved one by
 * one; a dynamic one only hides the circle. Circles between workspaces cannot arise where the table of imports holds, so only relative imports
 * are followed.
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
  const followed = imports.filter(specifier => specifier.startsWith('.'))
  return followed.map(specifier => posix.join(posix.dirname(source.path), specifier))
}
