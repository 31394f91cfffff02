/** What bounds everything, each configurable where a program starts. The defaults are part of the contract. */
const KiB = 1024
const MiB = 1024 * KiB

export type Limits = Readonly<Record<keyof typeof defaultLimits, number>>

export const defaultLimits = {
  /** One request's body. */
  bodyBytes: 2 * MiB,
  /** Nesting of any JSON value that enters: requests, contents, deltas. */
  jsonDepth: 64,
  /** Keys and items of one JSON value that enters. */
  jsonItems: 10_000,
  /** Turns of one task that wait behind the running one. */
  queuedTurns: 100,
  /** The text or bytes of one delta; longer ones are split. */
  deltaBytes: 64 * KiB,
  /** What one turn may say in all. */
  turnBytes: 16 * MiB,
  /** What the steps of one turn may remember in all, as JSON: their results and their messages. */
  stepsBytes: 16 * MiB,
  /** What a viewer may leave unread before it is skipped ahead with a snapshot. */
  viewerBytes: 1 * MiB,
  /** How long a viewer may read nothing before it is cut. */
  viewerStallMs: 30_000,
  /** Messages of ended turns in a snapshot. */
  snapshotBytes: 1 * MiB,
} as const satisfies Record<string, number>

/** Highest index of a reasoning part. */
export const maxReasoningIndex = 255
/** Items on one page of a listing, and turns in a snapshot. */
export const maxPageSize = 100
/** UTF-16 units in the name of a step. */
export const maxStepName = 200
/** Longest life of a token for one task. Streams hand out fresh ones. */
export const maxTokenSeconds = 3_600
