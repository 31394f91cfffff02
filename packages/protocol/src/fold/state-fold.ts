/** The fold of a task's state. Apart from its schema, so that a reader of events needs no validation library. */
import type { State } from '../entities/state.ts'
import { RivuletError } from '../errors.ts'
import type { EventOf } from '../events/event.ts'
import { mergePatch } from '../values/merge-patch.ts'

/** Of a task whose state was never set. */
export const noState: State = { version: 0, value: null }

/** @param before null for a reader that began in the middle: it learns the state with the next whole value */
export function foldState(before: State | null, { version, value, patch }: EventOf<'state.changed'>): State | null {
  if (value !== undefined) return { version, value }
  if (!before || !patch) return before
  if (version !== before.version + 1)
    throw new RivuletError('offset_mismatch', `The state has version ${before.version}, but its patch makes version ${version}`)
  return { version, value: mergePatch(before.value, patch) }
}
