/** The limits of requests, turns and viewers, set by variables of the API. A claim sends workers theirs. The defaults are part of the contract. */
import { maxOutputDepth } from './values/json.ts'

const KiB = 1024
const MiB = 1024 * KiB

export type Limits = Readonly<Record<keyof typeof defaultLimits, number>>

export const defaultLimits = {
  /** One request's body. */
  bodyBytes: 2 * MiB,
  /** Nesting of any JSON value in requests, contents and deltas. The output of agents always has this default. */
  jsonDepth: maxOutputDepth,
  /** Keys and items of one JSON value in a request. */
  jsonItems: 10_000,
  /** Turns of one task that wait behind the running one. */
  queuedTurns: 100,
  /** The text or bytes of one delta; longer ones are split. */
  deltaBytes: 64 * KiB,
  /** The total output of one turn. */
  turnBytes: 16 * MiB,
  /** The total stored by the steps of one turn, as JSON: their results and their messages. */
  stepsBytes: 16 * MiB,
  /** Unread bytes of one viewer. Above this the API skips the viewer ahead with a snapshot. */
  viewerBytes: 1 * MiB,
  /** How long a client may read nothing of a response, a viewer nothing of its stream, before the connection is cut. */
  viewerStallMs: 30_000,
  /** In a snapshot: messages of ended turns, and as much again of what the task and its turns carry. */
  snapshotBytes: 1 * MiB,
  /** One page of a listing, and the inputs and params of the turns of one task. */
  pageBytes: 4 * MiB,
  /** One file. */
  fileBytes: 100 * MiB,
} as const satisfies Record<string, number>

/** The variable that sets each limit. Error messages name it. */
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
  pageBytes: 'MAX_PAGE_BYTES',
  fileBytes: 'MAX_FILE_BYTES',
} as const satisfies Record<keyof Limits, string>

/** The limits of a request's head. Not configurable; the API rejects what is larger. */
export const headLimits = {
  /** All headers together. */
  headerBytes: 16 * KiB,
  headerCount: 2_000,
  /** One segment of the path: an id, or a file name. */
  paramLength: 100,
  /** How long the head may take to arrive, and how long the whole request may take. */
  requestMs: 10_000,
  /** Requests of one connection whose responses are not written yet: a client that sends one after the other has one. */
  requestsUnderWay: 8,
} as const satisfies Record<string, number>

/** Inputs of one request: consecutive messages of the user. */
export const maxInputs = 20
/** Inputs that join a turn at once, as JSON: more of them wait for the next time. */
export const maxJoinedBytes = 2 * MiB
/** Messages of an imported history. */
export const maxHistoryMessages = 1_000

/** Secrets of one task or turn, and the characters of each. */
export const maxSecrets = 32
export const maxSecretLength = 8_192

/** Tasks on one event stream (`POST /v1/events`). */
export const maxStreamTasks = 1_000

/** How many faults of a request its error response lists. */
export const maxDetails = 20
/** Highest index of a reasoning part. */
export const maxReasoningIndex = 255
/** Items on one page of a listing, and turns in a snapshot. */
export const maxPageSize = 100
/** The input in `turn.queued`, as JSON. Longer ones are left out: a log tells of every waiting turn, and may have to tell of all of them at once. */
export const maxQueuedInputBytes = 64 * KiB
/** Longest wait of a request for the end of a turn (`?wait=`): below the idle timeout that most proxies have. */
export const maxWaitMs = 60_000
/** `metadata.<key>` in one listing: each is looked for in every task of the tenant. */
export const maxMetadataFilters = 10
/** UTF-16 units in the name of a step. */
export const maxStepName = 200
/** UTF-16 units in the name of a model. */
export const maxModelName = 200
/** Records of usage in one call of a worker. */
export const maxUsageRecords = 1_000
/** Waits that one turn may open, and the bytes of all of them as JSON. A viewer gets them all, so they are few and small. */
export const maxWaits = 200
export const maxWaitsBytes = 256 * KiB
/** UTF-16 units in the name of a wait or a signal. */
export const maxWaitName = 100
/** The content of an answer or a signal, as JSON. */
export const maxAnswerBytes = 64 * KiB
/** The state of a task, as JSON. A viewer gets all of it. */
export const maxStateBytes = 1 * MiB
/** The key of a stored value, one stored value as JSON, and all values of a scope. */
export const maxStoreKey = 100
export const maxStoreValueBytes = 64 * KiB
export const maxStoreScopeBytes = 16 * MiB
/** Signals of one task that no turn has waited for yet, and how long they are kept. */
export const maxSignals = 100
export const signalHours = 24
/** How long a wait stays open unless its agent decides otherwise, and at most. */
export const waitDays = 7
export const maxWaitDays = 365
/** Longest life of a token for one task, together with the fresh ones that streams hand out. */
export const maxTokenSeconds = 3_600
/** UTF-16 units in the name of a file. */
export const maxFileName = 255
/** Characters in the MIME type of a file. */
export const maxMimeType = 255
/** Inline media in a stored message. Longer ones become a file when the message is committed. */
export const maxInlineMediaBytes = 64 * KiB
/** The value of `data` and `tool_response` in a stored message, as JSON. Longer ones become a file when the message is committed. */
export const maxInlineValueBytes = 256 * KiB

/** The longest time that activity and errors are read for. */
export const maxActivityMinutes = 7 * 24 * 60

/** A report of usage: days, and groups. */
export const maxUsageDays = 400
export const maxUsageGroups = 1_000
