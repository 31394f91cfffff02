/** Counts by name. A name whose count is 0 takes no memory. */
export type Tally = {
  countOf(name: string): number
  add(name: string): void
  remove(name: string): void
  entries(): Iterable<readonly [name: string, count: number]>
}

export function createTally(): Tally {
  const counts = new Map<string, number>()
  const countOf = (name: string) => counts.get(name) ?? 0
  return {
    countOf,
    entries: () => counts,
    add: name => void counts.set(name, countOf(name) + 1),
    remove: name => void (countOf(name) > 1 ? counts.set(name, countOf(name) - 1) : counts.delete(name)),
  }
}
