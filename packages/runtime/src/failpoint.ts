/**
 * Failpoints: the places between two steps of ours that are not one step, where the fault bench can kill, fail or delay a process.
 *
 * A program that is not on the bench has no handler, so `failpoint` is undefined there and every place reads
 * `if (failpoint) await failpoint('committed')`. The bundler knows that it is undefined and removes all of it (`scripts/bundle.ts`).
 * `test/faults/failpoints.ts` is the handler; it is loaded before anything else.
 */
export const failpoints = [
  'accepting',
  'accepted',
  'enqueuing',
  'enqueued',
  'claimed',
  'claim answered',
  'appending',
  'appended',
  'reopened',
  'finish answered',
  'folded',
  'committed',
  'seized',
  'fenced',
  'announced',
  'answering',
  'feed opened',
  'asked',
  'holding',
  'parked',
  'park answering',
  'answered',
  'spawned',
  'child ended',
  'taken',
  'take answered',
  'joined',
  'file begun',
  'file written',
  'delivery claimed',
  'delivered',
  'schedule ran',
] as const

export type Failpoint = (typeof failpoints)[number]

/** The values are written to the journal of the process. A handler that returns a promise delays this step alone. */
export type FailpointHandler = (name: Failpoint, ...values: unknown[]) => Promise<void> | undefined

declare global {
  var rivuletFailpoint: FailpointHandler | undefined
}

export const failpoint = globalThis.rivuletFailpoint
