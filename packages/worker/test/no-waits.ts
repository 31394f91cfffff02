/** For tests of everything else. */
import { createSpawn } from '../src/turn/waits/spawn.ts'
import type { Waits } from '../src/turn/waits/waits.ts'

export const noWaits: Waits = {
  open: () => Promise.reject(new Error('This test has no waits')),
  openBy: () => Promise.reject(new Error('This test has no waits')),
  wake: () => {},
  hasReturned: () => false,
  pending: () => [],
}

export const noChildren = createSpawn({ waits: noWaits, within: () => undefined, ask: never, read: never })

function never(): Promise<never> {
  return Promise.reject(new Error('This test has no children'))
}
