/** The rows of a task that a feed holds. One query serves all waiting callers, and its result never replaces rows that were put here meanwhile. */
import type { SnapshotBase } from './snapshot.ts'

/** `load` loads for a reader that knows the turns up to that one. */
export function createStoredTaskCache(load: (turnNumber: number) => Promise<SnapshotBase>) {
  let base: SnapshotBase | null = null
  /** Whether the rows are from after the last end of a turn with large values. */
  let isCurrent = false
  let puts = 0
  let asking: Promise<void> | null = null
  return { get: () => base, isCurrent: () => isCurrent, require: requireBase, put, ask, outdate }

  function requireBase(): SnapshotBase {
    if (!base) throw new Error('The feed is not ready')
    return base
  }

  function put(loaded: SnapshotBase | null): void {
    base = loaded
    isCurrent = true
    puts += 1
  }

  /** Rows that are being loaded may be from before this, so they are loaded again. */
  function outdate(): void {
    isCurrent = false
    puts += 1
  }

  /** One query for all callers that wait for it. */
  function ask(turnNumber: number): Promise<void> {
    const asked = puts
    asking ??= load(turnNumber)
      .then(loaded => {
        if (asked !== puts) return
        base = loaded
        isCurrent = true
      })
      .finally(() => {
        asking = null
      })
    return asking
  }
}
