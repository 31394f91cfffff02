/** For tests of everything else. */
import type { Waits } from '../src/turn/waits.ts'

export const noWaits: Waits = {
  open: () => Promise.reject(new Error('This test has no waits')),
  wake: () => {},
  hasReturned: () => false,
  pending: () => [],
}
