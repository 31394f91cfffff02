/** What bounds everything, each set where an API starts, which tells its workers theirs. The defaults are part of the contract. */
const KiB = 1024
const MiB = 1024 * KiB

export type Limits = Readonly<Record<keyof typeof defaultLimits, number>>

export const defaultLimits = {
  /** One request's body. */
  bodyBytes: 2 * MiB,
  /** Nesting of any JSON value that enters: requests, contents, deltas. What agents say stays at this one: every reader has to agree on it. */
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

/** What each is called where it is set, and in the error of whoever meets it. */
export const limitNames = {
  bodyBytes: 'MAX_BODY_BYTES',
  jsonDepth: 'MAX_JSON_DEPTH',
  jsonItems: 'MAX_JSON_ITEMS',
  queuedTurns: 'MAX_QUEUED_TURNS_PER_TASK',
  deltaBytes: 'MAX_DELTA_BYTES',
  turnBytes: 'MAX_TURN_BYTES',
  stepsBytes: 'MAX_STEPS_BYTES',
  viewerBytes: 'MAX_VIEWER_BYTES',
  viewerStallMs: 'MAX_VIEWER_STALL_MS',
  snapshotBytes: 'MAX_SNAPSHOT_BYTES',
} as const satisfies Record<keyof Limits, string>

/** Of a request before its body, where nothing is configured: what is larger is no request to us. */
export const headLimits = {
  /** All headers together. */
  headerBytes: 16 * KiB,
  headerCount: 2_000,
  /** One part of the address: an id, or the name of a file. */
  paramLength: 100,
  /** How long a head may take to arrive, and then all of the request. */
  requestMs: 10_000,
} as const satisfies Record<string, number>

/** How many of the things that are wrong with a request it is told. */
export const maxDetails = 20
/** Highest index of a reasoning part. */
export const maxReasoningIndex = 255
/** Items on one page of a listing, and turns in a snapshot. */
export const maxPageSize = 100
/** `metadata.<key>` in one listing: each is looked for in every task of the tenant. */
export const maxMetadataFilters = 10
/** UTF-16 units in the name of a step. */
export const maxStepName = 200
/** Longest life of a token for one task. Streams hand out fresh ones. */
export const maxTokenSeconds = 3_600
